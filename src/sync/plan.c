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
		if (policy->recursive || policy->dirs)
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

bool tt_plan_keeps_time(const struct tt_plan_policy *policy, uint32_t mode)
{
	return policy->times && !(policy->omit_dir_times && S_ISDIR(mode))
	       && !(policy->omit_link_times && S_ISLNK(mode));
}

uint32_t tt_plan_made_now(const struct tt_plan_policy *policy, uint32_t mode)
{
	if (tt_plan_keeps_time(policy, mode))
		return 0;
	return policy->times ? TT_ITEM_TIME : TT_ITEM_TIME_NOW;
}

static bool plan_in_window(const struct tt_plan_policy *policy, int64_t a_sec, int64_t b_sec)
{
	return a_sec < b_sec ? b_sec - a_sec <= policy->window_sec
			     : a_sec - b_sec <= policy->window_sec;
}

/* Below 0 if `a` is older: by more than --modify-window, or after both have been cut to what the
 * destination can hold. */
static int plan_compare_times(
	const struct tt_plan_policy *policy, const struct tt_entry *a, const struct tt_entry *b)
{
	if (policy->has_window) {
		if (plan_in_window(policy, a->mtime_sec, b->mtime_sec))
			return 0;
		return a->mtime_sec < b->mtime_sec ? -1 : 1;
	}
	return tt_granularity_compare(
		policy->granularity_ns, a->mtime_sec, a->mtime_nsec, b->mtime_sec, b->mtime_nsec);
}

/* -u. With a window, what is newer by less than it is not worth a copy, as in rsync. */
static bool plan_is_newer(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	if (policy->has_window)
		return wanted->mtime_sec - existing->mtime_sec < policy->window_sec;
	return plan_compare_times(policy, existing, wanted) > 0;
}

/* Whole seconds: rsync has no more of them. */
static bool plan_atime_differs(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	if (!policy->atimes || S_ISDIR(wanted->mode) || S_ISLNK(wanted->mode))
		return false;
	return policy->has_window ? !plan_in_window(policy, wanted->atime_sec, existing->atime_sec)
				  : wanted->atime_sec != existing->atime_sec;
}

static bool plan_is_executable(const struct tt_entry *entry)
{
	return (entry->mode & 0111) != 0;
}

static bool plan_perms_differ(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	if (S_ISLNK(wanted->mode)) /* Linux has no modes of symbolic links */
		return false;
	if (policy->perms)
		return ((wanted->mode ^ existing->mode) & PERMISSION_BITS) != 0;
	return policy->executability && S_ISREG(wanted->mode)
	       && plan_is_executable(wanted) != plan_is_executable(existing);
}

/* The differences that -p, -o, -g and -t would mend. */
static uint32_t plan_attributes(const struct tt_plan_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	uint32_t item = 0;

	if (tt_plan_keeps_time(policy, wanted->mode)
		&& plan_compare_times(policy, wanted, existing) != 0)
		item |= TT_ITEM_TIME;
	if (plan_atime_differs(policy, wanted, existing))
		item |= TT_ITEM_ATIME;
	if (plan_perms_differ(policy, wanted, existing))
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
		if (policy->checksum && policy->times
			&& (policy->granularity_ns == 0 || policy->has_window)
			&& action->kind == TT_PLAN_KEEP
			&& (wanted->mtime_nsec != existing->mtime_nsec
				|| wanted->mtime_sec != existing->mtime_sec))
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
	if (action->item & (TT_ITEM_TRANSFER | TT_ITEM_LOCAL))
		action->item |= tt_plan_made_now(policy, wanted->mode);
}

/* --max-size and --min-size: 0, or the bit that says which. */
static uint32_t plan_off_size(const struct tt_plan_policy *policy, const struct tt_entry *wanted)
{
	if (!S_ISREG(wanted->mode))
		return 0;
	if (policy->has_max_size && wanted->size_bytes > policy->max_size_bytes)
		return TT_ITEM_OVER_SIZE;
	return wanted->size_bytes < policy->min_size_bytes ? TT_ITEM_UNDER_SIZE : 0;
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
	action.item = plan_off_size(policy, wanted);
	if (action.item != 0)
		goto out;
	if (policy->update && same_type && S_ISREG(wanted->mode)
		&& plan_is_newer(policy, wanted, existing))
		goto out;
	action.make_way = existing && !same_type;
	if (same_type || (existing && plan_is_related(wanted, existing)))
		plan_existing(policy, wanted, existing, &action);
	else
		plan_new(wanted, &action);
out:
	*ret_action = action;
}
