/* SPDX-License-Identifier: MIT */
/*
 * The queue of directories against a walk: a tree at random, pushed in random order, comes out in
 * the order in which rsync would walk it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "sync/dir.h"

enum {
	COUNT = 1500
};

struct tree {
	struct tt_dir *made[COUNT], *walked[COUNT];
	unsigned made_count, walked_count;
	unsigned seed;
};

static unsigned below(struct tree *tree, unsigned limit)
{
	return (unsigned)rand_r(&tree->seed) % limit;
}

static struct tt_dir *make(struct tree *tree, struct tt_dir *parent, unsigned index)
{
	char name[16];

	(void)snprintf(name, sizeof name, "d%u", index);
	const struct tt_entry entry = {.name = name, .mode = S_IFDIR | 0755};
	struct tt_dir *dir = tt_dir_new(parent, parent ? &entry : NULL, 0);

	assert_non_null(dir);
	dir->index = index;
	tree->made[tree->made_count++] = dir;
	return dir;
}

/* Grows by giving random directories one child more. */
static void grow(struct tree *tree)
{
	make(tree, NULL, 0);
	while (tree->made_count < COUNT) {
		/* Sometimes the newest, so that it gets deep. */
		struct tt_dir *parent =
			tree->made[below(tree, 3) == 0 ? tree->made_count - 1
						       : below(tree, tree->made_count)];
		struct tt_dir *child = make(tree, parent, parent->child_count);

		parent->children = realloc(
			parent->children, (parent->child_count + 1) * sizeof *parent->children);
		assert_non_null(parent->children);
		parent->children[parent->child_count++] = child;
	}
}

static void walk(struct tree *tree, struct tt_dir *dir)
{
	tree->walked[tree->walked_count++] = dir;
	for (unsigned i = 0; i < dir->child_count; i++)
		walk(tree, dir->children[i]);
}

static void shuffle(struct tree *tree)
{
	for (unsigned i = COUNT - 1; i > 0; i--) {
		unsigned k = below(tree, i + 1);
		struct tt_dir *dir = tree->made[i];

		tree->made[i] = tree->made[k];
		tree->made[k] = dir;
	}
}

static void free_tree(struct tree *tree)
{
	for (unsigned i = 0; i < COUNT; i++)
		tt_dir_free(tree->made[i]);
}

static void test_the_queue_gives_rsyncs_order(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 10; seed++) {
		struct tree tree = {.seed = seed};
		struct tt_engine *engine = calloc(1, sizeof *engine);

		assert_non_null(engine);
		grow(&tree);
		walk(&tree, tree.made[0]);
		shuffle(&tree);
		for (unsigned i = 0; i < COUNT; i++)
			assert_int_equal(tt_dir_queue_push(engine, tree.made[i]), 0);
		for (unsigned i = 0; i < COUNT; i++) {
			struct tt_dir *first = tt_dir_queue_first(engine);

			assert_ptr_equal(first, tree.walked[i]);
			tt_dir_queue_remove(engine, first);
			assert_int_equal(first->heap_index, 0);
		}
		assert_null(tt_dir_queue_first(engine));
		free(engine->heap);
		free(engine);
		free_tree(&tree);
	}
}

static void test_any_may_leave_the_queue(void **state)
{
	struct tree tree = {.seed = 99};
	struct tt_engine *engine = calloc(1, sizeof *engine);
	unsigned next = 0;

	(void)state;
	assert_non_null(engine);
	grow(&tree);
	walk(&tree, tree.made[0]);
	shuffle(&tree);
	for (unsigned i = 0; i < COUNT; i++)
		assert_int_equal(tt_dir_queue_push(engine, tree.made[i]), 0);
	for (unsigned i = 0; i < COUNT; i += 2)
		tt_dir_queue_remove(engine, tree.made[i]);
	for (unsigned i = 0; i < COUNT / 2; i++) {
		while (tree.walked[next]->heap_index == 0)
			next++;
		assert_ptr_equal(tt_dir_queue_first(engine), tree.walked[next]);
		tt_dir_queue_remove(engine, tree.walked[next]);
	}
	assert_null(tt_dir_queue_first(engine));
	free(engine->heap);
	free(engine);
	free_tree(&tree);
}

static void test_the_order_is_one(void **state)
{
	struct tree tree = {.seed = 7};

	(void)state;
	grow(&tree);
	walk(&tree, tree.made[0]);
	for (unsigned i = 0; i < COUNT; i += 7) {
		assert_int_equal(tt_dir_compare(tree.walked[i], tree.walked[i]), 0);
		for (unsigned k = 0; k < COUNT; k += 5) {
			int r = tt_dir_compare(tree.walked[i], tree.walked[k]);

			assert_int_equal(r < 0, i < k);
			assert_int_equal(r > 0, i > k);
		}
	}
	free_tree(&tree);
}

static void test_a_node_knows_its_path(void **state)
{
	struct tree tree = {.seed = 1};
	struct tt_dir *root = make(&tree, NULL, 0);
	struct tt_dir *child = make(&tree, root, 3), *grandchild = make(&tree, child, 4);
	char buffer[100];

	(void)state;
	assert_string_equal(root->path, "");
	assert_string_equal(child->path, "d3");
	assert_string_equal(grandchild->path, "d3/d4");
	assert_string_equal(grandchild->name, "d4");
	assert_int_equal(grandchild->depth, 2);
	assert_int_equal(grandchild->destination_fd, -1);
	assert_string_equal(tt_engine_path(root, "x", buffer, sizeof buffer), "x");
	assert_string_equal(tt_engine_path(grandchild, "x", buffer, sizeof buffer), "d3/d4/x");
	assert_string_equal(tt_engine_path(grandchild, NULL, buffer, sizeof buffer), "d3/d4");
	for (unsigned i = 0; i < 3; i++)
		tt_dir_free(tree.made[i]);
	tt_dir_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_queue_gives_rsyncs_order),
		cmocka_unit_test(test_any_may_leave_the_queue),
		cmocka_unit_test(test_the_order_is_one),
		cmocka_unit_test(test_a_node_knows_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
