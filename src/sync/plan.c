/* SPDX-License-Identifier: MIT */
/*
 * The rules of rsync 3.5, found by running it (tests/tools/plan_cases.py): first what the options
 * leave out, then whether the content stands, then which attributes differ.
 *
 * Times are compared as finely as the destination keeps them: as rsync does with --modify-window=-1
 * on most file systems, and with odd seconds cut off on FAT. rsync's own default of whole seconds
 * misses a change within one, and copies files with odd seconds to FAT in every run.
 */
#include <sys/stat.h>

#include "sync/plan.h"
#include "sys/granularity.h"
#include "tree/entry.h"

enum {
	PERMISSION_BITS = 07777
};

static bool plan_is_device(const struct tt_entry *entry)
{
	return S_ISCHR(entry->mode) || S_ISBLK(entry->mode);
}

static bool plan_same_type(const struct tt_entry *a, const struct tt_entry *b)
{
	return (a->mode & S_IFMT) == (b->mode & S_IFMT);
}

static bool plan_is_special(const struct tt_entry *entry)
{
	return S_ISFIFO(entry->mode) || S_ISSOCK(entry->mode);
}

/* Of two types, but rsync shows the one becoming the other as a change, not as something new. */
static bool plan_is_related(const struct tt_entry *a, const struct tt_entry *b)
{
	return (plan_is_device(a) && plan_is_device(b))
	       || (plan_is_special(a) && plan_is_special(b));
}

/* Whether a device, fifo or socket is the wanted one. rsync 3.5 takes a block device for a
 * character device of the same number and leaves it; that is no copy, so it is made anew here. */
static bool plan_same_node(const struct tt_entry *wanted, const struct tt_entry *existing)
{
	if (!plan_same_type(wanted, existing))
		return false;
	return !plan_is_device(wanted)
	       || (wanted->rdev_major == existing->rdev_major
		       && wanted->rdev_minor == existing->rdev_minor);
}

/* What the options leave out whatever the destination has. */
static bool plan_leaves_out(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	enum tt_plan_kind *ret_kind)
{
	*ret_kind = TT_PLAN_SKIP;
	switch (wanted->mode & S_IFMT) {
	case S_IFREG:
		return false;
	case S_IFDIR:
		if (policy->recursive)
			return false;
		*ret_kind = TT_PLAN_SKIP_DIR;
		return true;
	case S_IFLNK:
		if (policy->links)
			return false;
		break;
	case S_IFCHR:
	case S_IFBLK:
		if (policy->devices && policy->is_super)
			return false;
		break;
	default:
		if (policy->specials)
			return false;
		break;
	}
	*ret_kind = TT_PLAN_SKIP_NONREG;
	return true;
}

/* Below 0 if `a` is older, after both have been cut to what the destination can hold. */
static int plan_compare_times(
	const struct tt_plan_policy *policy, const struct tt_entry *a, const struct tt_entry *b)
{
	return tt_granularity_compare(
		policy->granularity_ns, a->mtime_sec, a->mtime_nsec, b->mtime_sec, b->mtime_nsec);
}

/* The differences that -p, -o, -g and -t would mend. */
static uint32_t plan_attributes(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	uint32_t item = 0;

	if (policy->times && plan_compare_times(policy, wanted, existing) != 0)
		item |= TT_ITEM_TIME;
	/* Linux has no modes of symbolic links. */
	if (policy->perms && !S_ISLNK(wanted->mode)
		&& ((wanted->mode ^ existing->mode) & PERMISSION_BITS))
		item |= TT_ITEM_PERMS;
	if (policy->owner && policy->is_super && wanted->uid != existing->uid)
		item |= TT_ITEM_OWNER;
	if (policy->group && !(wanted->flags & TT_ENTRY_SKIP_GROUP) && wanted->gid != existing->gid)
		item |= TT_ITEM_GROUP;
	return item;
}

/* rsync's quick check for regular files and what replaces it. */
static bool plan_same_content(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	if (wanted->size_bytes != existing->size_bytes)
		return false;
	if (policy->checksum)
		return wanted->flags & TT_ENTRY_SAME_DATA;
	if (policy->size_only)
		return true;
	if (policy->ignore_times)
		return false;
	return plan_compare_times(policy, wanted, existing) == 0;
}

static void plan_regular(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, struct tt_plan_action *action)
{
	if (plan_same_content(policy, wanted, existing)) {
		/* Content that was compared brings the time in full, for which rsync has no letter.
		 */
		if (policy->checksum && policy->times && policy->granularity_ns == 0
			&& action->kind == TT_PLAN_KEEP
			&& wanted->mtime_nsec != existing->mtime_nsec)
			action->kind = TT_PLAN_ATTRIBUTES;
		return;
	}
	if (policy->append && existing->size_bytes >= wanted->size_bytes) {
		action->kind = TT_PLAN_SKIP_LONG;
		action->item = 0;
		return;
	}
	action->kind = TT_PLAN_COPY;
	action->item |= TT_ITEM_TRANSFER;
	if (wanted->size_bytes != existing->size_bytes)
		action->item |= TT_ITEM_SIZE;
	if (policy->checksum)
		action->item |= TT_ITEM_CHECKSUM;
}

static void plan_new(const struct tt_entry *wanted, struct tt_plan_action *action)
{
	action->item = TT_ITEM_NEW;
	switch (wanted->mode & S_IFMT) {
	case S_IFREG:
		action->kind = TT_PLAN_COPY;
		action->item |= TT_ITEM_TRANSFER;
		break;
	case S_IFDIR:
		action->kind = TT_PLAN_DIRECTORY;
		action->item |= TT_ITEM_LOCAL;
		break;
	case S_IFLNK:
		action->kind = TT_PLAN_SYMLINK;
		action->item |= TT_ITEM_LOCAL;
		break;
	default:
		action->kind = TT_PLAN_NODE;
		action->item |= TT_ITEM_LOCAL;
		break;
	}
}

/* The destination has the name, with the same type or a related one. */
static void plan_existing(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, struct tt_plan_action *action)
{
	action->item = plan_attributes(policy, wanted, existing);
	action->kind = action->item ? TT_PLAN_ATTRIBUTES : TT_PLAN_KEEP;
	if (S_ISDIR(wanted->mode)) {
		action->kind = TT_PLAN_DIRECTORY;
	} else if (S_ISREG(wanted->mode)) {
		plan_regular(policy, wanted, existing, action);
	} else if (S_ISLNK(wanted->mode)) {
		if (!(wanted->flags & TT_ENTRY_SAME_LINK)) {
			action->kind = TT_PLAN_SYMLINK;
			action->item |= TT_ITEM_LOCAL | TT_ITEM_CHECKSUM;
		}
	} else if (!plan_same_node(wanted, existing)) {
		action->kind = TT_PLAN_NODE;
		action->item |= TT_ITEM_LOCAL | TT_ITEM_CHECKSUM;
	}
	/* What is made anew without -t has the time of the transfer. */
	if (!policy->times && (action->item & (TT_ITEM_TRANSFER | TT_ITEM_LOCAL)))
		action->item |= TT_ITEM_TIME_NOW;
}

void tt_plan_entry(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, struct tt_plan_action *ret_action)
{
	struct tt_plan_action action = {.kind = TT_PLAN_SKIP};
	bool same_type = existing && plan_same_type(wanted, existing);

	action.exists = same_type;
	/* These two come first: rsync says nothing of a non-regular file that they concern. */
	if (!existing && policy->existing)
		goto out;
	if (existing && policy->ignore_existing && !(same_type && S_ISDIR(wanted->mode)))
		goto out;
	if (plan_leaves_out(policy, wanted, &action.kind))
		goto out;
	if (policy->update && same_type && S_ISREG(wanted->mode)
		&& plan_compare_times(policy, existing, wanted) > 0)
		goto out;
	action.make_way = existing && !same_type;
	if (same_type || (existing && plan_is_related(wanted, existing)))
		plan_existing(policy, wanted, existing, &action);
	else
		plan_new(wanted, &action);
out:
	*ret_action = action;
}
