/* SPDX-License-Identifier: MIT */
/*
 * See order.h.
 */
#include "sync/order.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "sync/volume.h"
#include "tree/linkset.h"

#define ORDER_NONE UINT32_MAX

struct order_member {
	const struct tt_entry *entry;
	unsigned index;
	enum tt_plan_kind kind;
	bool exists;
};

struct order {
	unsigned *behind; /* by index: the first name that moved behind this one */
	unsigned *next;   /* by index of a name that moved: the next one at the same place */
	bool *moved;
};

static int order_compare(const void *a, const void *b)
{
	const struct order_member *x = a, *y = b;

	if (x->entry->ino != y->entry->ino)
		return x->entry->ino < y->entry->ino ? -1 : 1;
	if (x->entry->dev_major != y->entry->dev_major)
		return x->entry->dev_major < y->entry->dev_major ? -1 : 1;
	if (x->entry->dev_minor != y->entry->dev_minor)
		return x->entry->dev_minor < y->entry->dev_minor ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static bool order_same_file(const struct order_member *a, const struct order_member *b)
{
	return a->entry->ino == b->entry->ino && a->entry->dev_major == b->entry->dev_major
	       && a->entry->dev_minor == b->entry->dev_minor;
}

/* The names in the listing that are regular files with others, sorted by file. */
static unsigned order_collect(
	const struct tt_engine *engine, const struct tt_dir *dir, struct order_member *members)
{
	const struct tt_plan_policy policy = tt_volume_plan_policy(engine, dir);
	unsigned count = 0;

	for (unsigned i = 0; i < dir->source.count; i++) {
		const struct tt_entry *entry = &dir->source.entries[i];
		struct tt_plan_action action;

		if (!S_ISREG(entry->mode) || entry->nlink < 2)
			continue;
		tt_plan_entry(&policy, entry,
			entry->twin != TT_ENTRY_NONE ? &dir->destination.entries[entry->twin]
						     : NULL,
			&action);
		if (action.kind != TT_PLAN_SKIP)
			members[count++] = (struct order_member){
				.entry = entry,
				.index = i,
				.kind = action.kind,
				.exists = action.exists,
			};
	}
	qsort(members, count, sizeof *members, order_compare);
	return count;
}

/* Which of these names of one file leads. */
static unsigned order_leader(const struct order_member *members, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (members[i].exists)
			return i;
	}
	return count == members[0].entry->nlink ? count - 1 : 0;
}

static void order_move(struct order *order, const struct order_member *members, unsigned count)
{
	unsigned leader = order_leader(members, count);
	unsigned place = members[leader].kind == TT_PLAN_COPY ? members[count - 1].index
							      : members[leader].index;

	for (unsigned i = 0; i < leader; i++) {
		unsigned index = members[i].index;

		order->moved[index] = true;
		order->next[index] = order->behind[place];
		order->behind[place] = index;
	}
}

static void order_write(const struct order *order, unsigned count, unsigned *ret_names)
{
	for (unsigned i = 0; i < count; i++) {
		if (order->moved[i])
			continue;
		*ret_names++ = i;
		for (unsigned k = order->behind[i]; k != ORDER_NONE; k = order->next[k])
			*ret_names++ = k;
	}
}

static bool order_init(struct order *order, unsigned count)
{
	order->behind = malloc(count * sizeof *order->behind);
	order->next = malloc(count * sizeof *order->next);
	order->moved = calloc(count, sizeof *order->moved);
	if (!order->behind || !order->next || !order->moved)
		return false;
	for (unsigned i = 0; i < count; i++)
		order->behind[i] = ORDER_NONE;
	return true;
}

struct tt_linkset_key tt_order_link_key(const struct tt_dir *dir, const struct tt_entry *entry)
{
	return (struct tt_linkset_key){.ino = entry->ino,
		.dev_major = entry->dev_major,
		.dev_minor = entry->dev_minor,
		.place = dir->mount};
}

unsigned *tt_order_names(struct tt_engine *engine, const struct tt_dir *dir)
{
	struct order_member *members = NULL;
	struct order order = {0};
	unsigned *names = NULL;
	unsigned linked = 0, end;

	for (unsigned i = 0; i < dir->source.count; i++)
		linked += S_ISREG(dir->source.entries[i].mode) && dir->source.entries[i].nlink > 1;
	if (!engine->policy.plan.hard_links || linked < 2)
		return NULL;
	members = malloc(linked * sizeof *members);
	names = malloc(dir->source.count * sizeof *names);
	if (members && names && order_init(&order, dir->source.count)) {
		linked = order_collect(engine, dir, members);
		for (unsigned first = 0; first < linked; first = end) {
			const struct tt_entry *entry = members[first].entry;

			for (end = first + 1; end < linked; end++) {
				if (!order_same_file(&members[first], &members[end]))
					break;
			}
			const struct tt_linkset_key key = tt_order_link_key(dir, entry);

			if (!tt_linkset_is_led(engine->links, &key))
				order_move(&order, members + first, end - first);
		}
		order_write(&order, dir->source.count, names);
	} else {
		free(names);
		names = NULL;
	}
	free(order.behind);
	free(order.next);
	free(order.moved);
	free(members);
	return names;
}
