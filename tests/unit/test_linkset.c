/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "tree/linkset.h"

static int enter(struct tt_linkset *set, uint32_t dev_major, uint32_t dev_minor, uint64_t ino,
	uint32_t place, const char *path, struct tt_linkset_group **ret_group)
{
	const struct tt_linkset_key key = {
		.ino = ino, .dev_major = dev_major, .dev_minor = dev_minor, .place = place};

	return tt_linkset_enter(set, &key, path, ret_group);
}

static void test_the_first_name_leads_and_the_others_follow(void **state)
{
	struct tt_linkset_group *a = NULL, *b = NULL, *c = NULL;
	struct tt_linkset *set = NULL;
	char path[] = "d/first";

	(void)state;
	assert_int_equal(tt_linkset_new(&set), 0);
	assert_int_equal(enter(set, 8, 1, 42, 0, path, &a), 1);
	path[0] = 'X'; /* it was copied */
	assert_int_equal(enter(set, 8, 1, 42, 0, "d/second", &b), 0);
	assert_ptr_equal(a, b);
	assert_string_equal(tt_linkset_leader(b), "d/first");
	assert_int_equal(enter(set, 8, 2, 42, 0, "other device", &c), 1);
	assert_ptr_not_equal(a, c);
	assert_int_equal(enter(set, 9, 1, 42, 0, "other major", &c), 1);
	assert_int_equal(enter(set, 8, 1, 43, 0, "other inode", &c), 1);
	assert_int_equal(enter(set, 8, 1, 42, 1, "other place", &c), 1);
	assert_int_equal(enter(set, 8, 1, 42, 1, "again", &b), 0);
	assert_ptr_equal(b, c);
	tt_linkset_free(set);
	tt_linkset_free(NULL);
}

static void test_followers_come_back_in_order(void **state)
{
	struct tt_linkset_group *group = NULL;
	struct tt_linkset *set = NULL;
	int names[100];
	void **followers = NULL;
	const char *leader = NULL;
	unsigned count = 0;

	(void)state;
	assert_int_equal(tt_linkset_new(&set), 0);
	assert_int_equal(enter(set, 8, 1, 42, 0, "a", &group), 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(tt_linkset_follow(set, group, &names[i], &leader), 0);
	tt_linkset_settle(set, group, TT_LINKSET_ARRIVED, &followers, &count);
	assert_int_equal(count, 100);
	for (int i = 0; i < 100; i++)
		assert_ptr_equal(followers[i], &names[i]);
	free(followers);
	assert_null(leader);
	assert_int_equal(tt_linkset_follow(set, group, &names[0], &leader), 1 + TT_LINKSET_ARRIVED);
	assert_string_equal(leader, "a");
	assert_int_equal(enter(set, 8, 1, 42, 0, "b", &group), 0);
	tt_linkset_settle(set, group, TT_LINKSET_ARRIVED, &followers, &count);
	assert_null(followers);
	assert_int_equal(count, 0);
	tt_linkset_free(set);
}

static void test_the_next_name_leads_after_a_failure(void **state)
{
	struct tt_linkset_group *group = NULL;
	struct tt_linkset *set = NULL;
	void **followers = NULL;
	const char *leader = NULL;
	unsigned count = 0;
	int x;

	(void)state;
	assert_int_equal(tt_linkset_new(&set), 0);
	assert_int_equal(enter(set, 8, 1, 42, 0, "a", &group), 1);
	tt_linkset_settle(set, group, TT_LINKSET_FAILED, &followers, &count);
	assert_int_equal(tt_linkset_follow(set, group, &x, &leader), 1 + TT_LINKSET_FAILED);
	assert_string_equal(leader, "a");
	assert_int_equal(enter(set, 8, 1, 42, 0, "b", &group), 1);
	assert_string_equal(tt_linkset_leader(group), "b");
	/* Whoever has met the failure of "a" comes too late to lead. */
	assert_int_equal(tt_linkset_promote(set, group, leader, "x"), 1);
	assert_int_equal(tt_linkset_follow(set, group, &x, &leader), 0);
	tt_linkset_settle(set, group, TT_LINKSET_FAILED, &followers, &count);
	assert_int_equal(count, 1);
	assert_ptr_equal(followers[0], &x);
	free(followers);
	assert_int_equal(tt_linkset_follow(set, group, &x, &leader), 1 + TT_LINKSET_FAILED);
	assert_int_equal(tt_linkset_promote(set, group, leader, "c"), 0);
	assert_int_equal(enter(set, 8, 1, 42, 0, "d", &group), 0);
	/* Freed with a follower waiting: nothing leaks. */
	assert_int_equal(tt_linkset_follow(set, group, &x, &leader), 0);
	tt_linkset_free(set);
}

static void test_of_all_that_find_an_inode_full_one_leads(void **state)
{
	struct tt_linkset_group *group = NULL;
	struct tt_linkset *set = NULL;
	void **followers = NULL;
	const char *one = NULL, *other = NULL, *now = NULL;
	unsigned count = 0;
	int x;

	(void)state;
	assert_int_equal(tt_linkset_new(&set), 0);
	assert_int_equal(enter(set, 8, 1, 42, 0, "a", &group), 1);
	tt_linkset_settle(set, group, TT_LINKSET_ARRIVED, &followers, &count);
	assert_int_equal(tt_linkset_follow(set, group, &x, &one), 1 + TT_LINKSET_ARRIVED);
	assert_int_equal(tt_linkset_follow(set, group, &x, &other), 1 + TT_LINKSET_ARRIVED);
	assert_int_equal(tt_linkset_promote(set, group, one, "b"), 0);
	assert_int_equal(tt_linkset_promote(set, group, other, "c"), 1);
	/* Nobody links to a name that is not there yet. */
	assert_int_equal(tt_linkset_follow(set, group, &x, &now), 0);
	tt_linkset_settle(set, group, TT_LINKSET_ARRIVED, &followers, &count);
	assert_int_equal(count, 1);
	free(followers);
	assert_int_equal(tt_linkset_follow(set, group, &x, &now), 1 + TT_LINKSET_ARRIVED);
	assert_string_equal(now, "b");
	assert_int_equal(tt_linkset_promote(set, group, other, "c"), 1);
	/* What is told of the names does not depend on who was faster. */
	assert_string_equal(tt_linkset_leader(group), "a");
	tt_linkset_free(set);
}

static void test_many_inodes_are_told_apart(void **state)
{
	enum {
		MANY = 50000
	};
	static struct tt_linkset_group *groups[MANY];
	struct tt_linkset *set = NULL;
	char path[5000];

	(void)state;
	assert_int_equal(tt_linkset_new(&set), 0);
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(path, sizeof(path), "%*d", i % 1000 ? 8 : 4999, i);
		assert_int_equal(
			enter(set, 8, (uint32_t)i % 1000, (uint64_t)i / 1000, 0, path, &groups[i]),
			1);
	}
	for (int i = 0; i < MANY; i++) {
		struct tt_linkset_group *again = NULL;

		assert_int_equal(
			enter(set, 8, (uint32_t)i % 1000, (uint64_t)i / 1000, 0, "x", &again), 0);
		assert_ptr_equal(again, groups[i]);
		assert_int_equal(atoi(tt_linkset_leader(again)), i);
	}
	tt_linkset_free(set);
}

struct shared {
	struct tt_linkset *set;
	struct tt_linkset_group *group;
	unsigned kept, refused;
};

static void *follow_many(void *argument)
{
	struct shared *shared = argument;
	struct tt_linkset_group *own = NULL;
	const char *leader;

	for (uint64_t i = 0; i < 2000; i++) {
		if (tt_linkset_follow(shared->set, shared->group, shared, &leader) == 0)
			__atomic_add_fetch(&shared->kept, 1, __ATOMIC_RELAXED);
		else
			__atomic_add_fetch(&shared->refused, 1, __ATOMIC_RELAXED);
		if (enter(shared->set, 1, 1, i, 0, "p", &own) >= 0)
			(void)tt_linkset_leader(own);
	}
	return NULL;
}

/* Every follower is either handed back or told at once, whenever the group settles. */
static void test_no_follower_is_lost_between_threads(void **state)
{
	struct shared shared = {0};
	pthread_t threads[4];
	void **followers = NULL;
	unsigned count = 0, more = 0;

	(void)state;
	assert_int_equal(tt_linkset_new(&shared.set), 0);
	assert_int_equal(enter(shared.set, 8, 1, 42, 0, "a", &shared.group), 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, follow_many, &shared), 0);
	while (__atomic_load_n(&shared.kept, __ATOMIC_RELAXED) < 100)
		;
	tt_linkset_settle(shared.set, shared.group, TT_LINKSET_ARRIVED, &followers, &count);
	free(followers);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	tt_linkset_settle(shared.set, shared.group, TT_LINKSET_ARRIVED, &followers, &more);
	assert_int_equal(more, 0);
	assert_int_equal(count, shared.kept);
	assert_int_equal(shared.kept + shared.refused, 8000);
	tt_linkset_free(shared.set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_name_leads_and_the_others_follow),
		cmocka_unit_test(test_followers_come_back_in_order),
		cmocka_unit_test(test_the_next_name_leads_after_a_failure),
		cmocka_unit_test(test_of_all_that_find_an_inode_full_one_leads),
		cmocka_unit_test(test_many_inodes_are_told_apart),
		cmocka_unit_test(test_no_follower_is_lost_between_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
