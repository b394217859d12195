/* SPDX-License-Identifier: MIT */
/*
 * -H: which names are one inode. The only thing of tiptoe's that grows with the tree, so it is
 * small: an identity, the leader's path, and who waits for it.
 *
 * A group is led by the name that enters first; the others (followers) are linked to it after it
 * arrived. If the leader fails, or its inode has as many names as the file system allows, the next
 * name leads. Of those that find that out at the same time one does: there is never more than one
 * leader on its way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tt_linkset;
struct tt_linkset_group;

/* What names must have in common to be one inode: that of the source, and a place at the
 * destination where links are possible (another number for each mount). */
struct tt_linkset_key {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	uint32_t place;
};

enum tt_linkset_state {
	TT_LINKSET_PENDING, /* the leader is being copied */
	TT_LINKSET_ARRIVED, /* the leader's name holds the content */
	TT_LINKSET_FAILED,  /* nobody leads: the next name becomes the leader */
};

/* Thread safe by one lock of its own, which is a leaf in the lock order. Returns 0 or -ENOMEM. */
int tt_linkset_new(struct tt_linkset **ret_set);
void tt_linkset_free(struct tt_linkset *set); /* accepts NULL; frees all groups */

/* Looks up the group of a key. A new group, or one in state FAILED, gets `path` (copied;
 * relative to the destination root) as its leader and becomes PENDING: returns 1, the caller leads.
 * Otherwise returns 0, the caller follows. Or -ENOMEM. Whoever plans, in an order that is the
 * same each time for keys of one place. */
int tt_linkset_enter(struct tt_linkset *set, const struct tt_linkset_key *key, const char *path,
	struct tt_linkset_group **ret_group);

/* For a leader whose name will not become another inode: its content is right already, or is
 * written in place. Planner thread only. */
void tt_linkset_set_stands(struct tt_linkset_group *group);
bool tt_linkset_stands(const struct tt_linkset_group *group);

/* Whether tt_linkset_enter() would find a leader. Any thread. */
bool tt_linkset_is_led(struct tt_linkset *set, const struct tt_linkset_key *key);

/* The path that tt_linkset_enter() has let lead, whoever leads by now: what is told does not depend
 * on who was faster. Valid until the set is freed. Planner thread only. */
const char *tt_linkset_leader(const struct tt_linkset_group *group);

/* Registers a follower to be handed back when the leader's fate is known. `follower` is the
 * caller's pointer. Returns 0 and keeps it while PENDING; otherwise returns 1 + state without
 * keeping it, and *ret_leader is the path of the leader that has this state, valid until the set is
 * freed; or -ENOMEM. Any thread. */
int tt_linkset_follow(struct tt_linkset *set, struct tt_linkset_group *group, void *follower,
	const char **ret_leader);

/* Sets the state after PENDING and takes the list of waiting followers, in the order they
 * registered: *ret_followers is a malloc'd array (the caller frees it) of *ret_count pointers. By
 * whoever has brought the leader on its way. Any thread. */
void tt_linkset_settle(struct tt_linkset *set, struct tt_linkset_group *group,
	enum tt_linkset_state state, void ***ret_followers, unsigned *ret_count);

/* Makes `path` the leader of a settled group instead of `tried`, which tt_linkset_follow() has
 * told: it has failed, or takes no more names. The state becomes PENDING, and the caller leads.
 * Returns 0, 1 if another name leads already (follow again), or -ENOMEM. Any thread. */
int tt_linkset_promote(struct tt_linkset *set, struct tt_linkset_group *group, const char *tried,
	const char *path);
