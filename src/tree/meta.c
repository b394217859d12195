/* SPDX-License-Identifier: MIT */
/*
 * One look at the inode, then at most chown, chmod and utimensat, each only if it changes
 * something.
 *
 * Two differences from rsync 3.5 on purpose: without -p, a setuid or setgid bit of the file that is
 * replaced is not kept if the new one has another owner or group (rsync turns a user's setuid file
 * into root's); and if the owner could not be set, neither bit is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/fd.h"
#include "tree/entry.h"
#include "tree/idmap.h"
#include "tree/meta.h"
#include "tree/modes.h"

enum {
	META_BITS = 07777
};

/* What is changed: an open file, or a name (fd -1) in a directory. */
struct meta_target {
	int fd;
	int dir_fd;
	const char *name;
};

const char *tt_meta_step_text(enum tt_meta_step step)
{
	switch (step) {
	case TT_META_OWNER:
		return "setting owner of";
	case TT_META_MODE:
		return "setting permissions of";
	case TT_META_TIMES:
		return "setting times of";
	}
	return "setting attributes of";
}

static bool meta_same_type(uint32_t a, uint32_t b)
{
	return (a & S_IFMT) == (b & S_IFMT);
}

void tt_meta_adjust(const struct tt_meta_policy *policy, struct tt_entry *wanted)
{
	if (policy->modes && !S_ISLNK(wanted->mode))
		wanted->mode = tt_modes_apply(policy->modes, wanted->mode, policy->umask_bits);
	if (policy->users)
		wanted->uid = tt_idmap_get(policy->users, wanted->uid);
	if (policy->groups)
		wanted->gid = tt_idmap_get(policy->groups, wanted->gid);
}

/* Who may read may execute what the source's owner or others may; an existing right is enough. */
static uint32_t meta_executable(uint32_t wanted_mode, uint32_t existing_mode)
{
	if (!(wanted_mode & 0111))
		return existing_mode & ~0111U;
	if (existing_mode & 0111)
		return existing_mode;
	return existing_mode | (existing_mode & 0444) >> 2;
}

uint32_t tt_meta_mode(const struct tt_meta_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing)
{
	if (policy->perms)
		return wanted->mode;
	if (existing && meta_same_type(existing->mode, wanted->mode))
		return policy->executability && S_ISREG(wanted->mode)
			       ? meta_executable(wanted->mode, existing->mode)
			       : existing->mode;
	return wanted->mode & (S_IFMT | (0777 & ~policy->umask_bits));
}

bool tt_meta_may_give_group(uint32_t gid)
{
	gid_t groups[NGROUPS_MAX > 1024 ? 1024 : NGROUPS_MAX];
	int count;

	if (gid == getegid())
		return true;
	count = getgroups((int)(sizeof(groups) / sizeof(groups[0])), groups);
	/* More groups than fit: let the kernel decide. */
	if (count < 0)
		return true;
	for (int i = 0; i < count; i++) {
		if (groups[i] == gid)
			return true;
	}
	return false;
}

static int meta_stat(const struct meta_target *target, struct stat *ret_st)
{
	int r = target->fd >= 0
			? fstat(target->fd, ret_st)
			: fstatat(target->dir_fd, target->name, ret_st, AT_SYMLINK_NOFOLLOW);

	return r < 0 ? -errno : 0;
}

static int meta_chown(const struct meta_target *target, uid_t uid, gid_t gid)
{
	int r = target->fd >= 0
			? fchown(target->fd, uid, gid)
			: fchownat(target->dir_fd, target->name, uid, gid, AT_SYMLINK_NOFOLLOW);

	return r < 0 ? -errno : 0;
}

static int meta_chmod(const struct meta_target *target, mode_t mode)
{
	if (target->fd < 0)
		return tt_fd_chmod_at(target->dir_fd, target->name, mode);
	return fchmod(target->fd, mode) < 0 ? -errno : 0;
}

static int meta_utimens(const struct meta_target *target, const struct timespec times[2])
{
	int r = target->fd >= 0
			? futimens(target->fd, times)
			: utimensat(target->dir_fd, target->name, times, AT_SYMLINK_NOFOLLOW);

	return r < 0 ? -errno : 0;
}

/* Sets owner and group; `st` has them afterwards. *ret_chowned: the kernel may have cleared setuid
 * and setgid. */
static int meta_set_owner(const struct tt_meta_policy *policy, const struct meta_target *target,
	const struct tt_entry *wanted, struct stat *st, bool *ret_chowned)
{
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;
	int r;

	*ret_chowned = false;
	if (policy->owner && policy->is_super && st->st_uid != wanted->uid)
		uid = wanted->uid;
	if (policy->group && st->st_gid != wanted->gid && !(wanted->flags & TT_ENTRY_SKIP_GROUP)
		&& (policy->is_super || tt_meta_may_give_group(wanted->gid)))
		gid = wanted->gid;
	if (uid == (uid_t)-1 && gid == (gid_t)-1)
		return 0;
	r = meta_chown(target, uid, gid);
	if (r < 0)
		return r;
	if (uid != (uid_t)-1)
		st->st_uid = uid;
	if (gid != (gid_t)-1)
		st->st_gid = gid;
	*ret_chowned = true;
	return 0;
}

/* The bits to arrive with, given the owner that it has now. */
static mode_t meta_wanted_bits(const struct tt_meta_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, const struct stat *st, bool owner_failed)
{
	mode_t bits = tt_meta_mode(policy, wanted, existing) & META_BITS;

	if (S_ISDIR(wanted->mode)) {
		/* A new directory has the setgid bit from the one it is in. */
		if (!policy->perms && !(existing && meta_same_type(existing->mode, wanted->mode)))
			bits |= st->st_mode & S_ISGID;
		return bits;
	}
	if (owner_failed)
		bits &= ~(mode_t)(S_ISUID | S_ISGID);
	if (!policy->perms && existing) {
		if (existing->uid != st->st_uid)
			bits &= ~(mode_t)S_ISUID;
		if (existing->gid != st->st_gid)
			bits &= ~(mode_t)S_ISGID;
	}
	return bits;
}

static bool meta_keeps_times(const struct tt_meta_policy *policy, const struct tt_entry *wanted)
{
	return policy->times && !(policy->omit_dir_times && S_ISDIR(wanted->mode))
	       && !(policy->omit_link_times && S_ISLNK(wanted->mode));
}

static bool meta_in_window(const struct tt_meta_policy *policy, int64_t a_sec, int64_t b_sec)
{
	return (a_sec < b_sec ? b_sec - a_sec : a_sec - b_sec) <= policy->window_sec;
}

/* Without exact_times, times that differ by no more than the window are left alone; a file that was
 * just written gets them in full. */
static bool meta_times_differ(const struct tt_meta_policy *policy, const struct tt_entry *wanted,
	const struct tt_entry *existing, const struct stat *st)
{
	if (!meta_keeps_times(policy, wanted))
		return false;
	if (st->st_mtim.tv_sec == wanted->mtime_sec
		&& st->st_mtim.tv_nsec == (long)wanted->mtime_nsec)
		return false;
	if ((policy->exact_files && S_ISREG(wanted->mode))
		|| !meta_in_window(policy, st->st_mtim.tv_sec, wanted->mtime_sec))
		return true;
	return !existing || policy->exact_times || existing->mtime_sec != st->st_mtim.tv_sec
	       || (long)existing->mtime_nsec != st->st_mtim.tv_nsec;
}

static bool meta_atime_differs(
	const struct tt_meta_policy *policy, const struct tt_entry *wanted, const struct stat *st)
{
	return policy->atimes && !S_ISDIR(wanted->mode) && !S_ISLNK(wanted->mode)
	       && (st->st_atim.tv_sec != wanted->atime_sec
		       || st->st_atim.tv_nsec != (long)wanted->atime_nsec);
}

/* `written`: both in any case, as far as they are kept. */
static int meta_set_times(const struct tt_meta_policy *policy, const struct meta_target *target,
	const struct tt_entry *wanted, const struct tt_entry *existing, const struct stat *st,
	bool written)
{
	bool mtime = written ? meta_keeps_times(policy, wanted)
			     : meta_times_differ(policy, wanted, existing, st);
	bool atime = written ? policy->atimes : meta_atime_differs(policy, wanted, st);
	const struct timespec times[2] = {
		{.tv_sec = wanted->atime_sec, .tv_nsec = atime ? wanted->atime_nsec : UTIME_OMIT},
		{.tv_sec = wanted->mtime_sec, .tv_nsec = mtime ? wanted->mtime_nsec : UTIME_OMIT},
	};

	return mtime || atime ? meta_utimens(target, times) : 0;
}

/* Sets what differs from `st`. `written`: content has been since, which has changed the times. */
static int meta_change(const struct tt_meta_policy *policy, const struct meta_target *target,
	const struct tt_entry *wanted, const struct tt_entry *existing, struct stat *st,
	bool written, enum tt_meta_step *ret_step)
{
	bool chowned;
	int r, result = 0;

	r = meta_set_owner(policy, target, wanted, st, &chowned);
	if (r < 0) {
		*ret_step = TT_META_OWNER;
		result = r;
	}
	if (!S_ISLNK(wanted->mode)) {
		mode_t bits = meta_wanted_bits(policy, wanted, existing, st, r < 0);

		r = 0;
		if (bits != (st->st_mode & META_BITS) || (chowned && (bits & (S_ISUID | S_ISGID))))
			r = meta_chmod(target, bits);
		if (r < 0 && result == 0) {
			*ret_step = TT_META_MODE;
			result = r;
		}
	}
	r = meta_set_times(policy, target, wanted, existing, st, written);
	if (r < 0 && result == 0) {
		*ret_step = TT_META_TIMES;
		result = r;
	}
	return result;
}

static int meta_apply(const struct tt_meta_policy *policy, const struct meta_target *target,
	const struct tt_entry *wanted, const struct tt_entry *existing, enum tt_meta_step *ret_step)
{
	struct stat st;
	int r = meta_stat(target, &st);

	if (r == 0 && !meta_same_type(st.st_mode, wanted->mode))
		r = -ESTALE; /* The name is another thing by now: it is not ours to change. */
	if (r < 0) {
		*ret_step = TT_META_OWNER;
		return r;
	}
	return meta_change(policy, target, wanted, existing, &st, false, ret_step);
}

int tt_meta_apply_made(const struct tt_meta_policy *policy, int fd, const struct stat *st,
	const struct tt_entry *wanted, const struct tt_entry *existing, enum tt_meta_step *ret_step)
{
	const struct meta_target target = {.fd = fd, .dir_fd = -1};
	struct stat now = *st;

	return meta_change(policy, &target, wanted, existing, &now, true, ret_step);
}

int tt_meta_apply_fd(const struct tt_meta_policy *policy, int fd, const struct tt_entry *wanted,
	const struct tt_entry *existing, enum tt_meta_step *ret_step)
{
	const struct meta_target target = {.fd = fd, .dir_fd = -1};

	return meta_apply(policy, &target, wanted, existing, ret_step);
}

int tt_meta_apply_at(const struct tt_meta_policy *policy, int dir_fd, const char *name,
	const struct tt_entry *wanted, const struct tt_entry *existing, enum tt_meta_step *ret_step)
{
	const struct meta_target target = {.fd = -1, .dir_fd = dir_fd, .name = name};

	return meta_apply(policy, &target, wanted, existing, ret_step);
}
