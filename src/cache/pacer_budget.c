/* SPDX-License-Identifier: MIT */
/*
 * See pacer_budget.h, and pacer.h for the budget's default size.
 */
#include "cache/pacer_budget.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/clock.h"
#include "cache/pacer.h"

void tt_pacer_budget_init(struct tt_pacer_budget *budget, uint64_t total_bytes)
{
	*budget = (struct tt_pacer_budget){.total_bytes = total_bytes};
	pthread_mutex_init(&budget->lock, NULL);
	pthread_cond_init(&budget->freed, NULL);
}

void tt_pacer_budget_deinit(struct tt_pacer_budget *budget)
{
	assert(budget->used_bytes == 0);
	pthread_mutex_destroy(&budget->lock);
	pthread_cond_destroy(&budget->freed);
}

static bool budget_grab(struct tt_pacer_budget *budget, uint64_t bytes)
{
	if (budget->used_bytes + bytes > budget->total_bytes)
		return false;
	budget->used_bytes += bytes;
	if (budget->used_bytes > budget->peak_bytes)
		budget->peak_bytes = budget->used_bytes;
	return true;
}

bool tt_pacer_budget_try(struct tt_pacer_budget *budget, uint64_t bytes)
{
	pthread_mutex_lock(&budget->lock);
	/* Not past those who are asleep for more. */
	bool granted = budget->waiters == 0 && budget_grab(budget, bytes);

	pthread_mutex_unlock(&budget->lock);
	return granted;
}

uint64_t tt_pacer_budget_take(struct tt_pacer_budget *budget, uint64_t bytes)
{
	uint64_t slept_ns = 0;

	assert(bytes <= budget->total_bytes);
	pthread_mutex_lock(&budget->lock);
	if (!budget_grab(budget, bytes)) {
		uint64_t start_ns = tt_clock_now_ns();

		budget->waiters++;
		while (!budget_grab(budget, bytes))
			pthread_cond_wait(&budget->freed, &budget->lock);
		budget->waiters--;
		slept_ns = tt_clock_now_ns() - start_ns;
		budget->wait_ns += slept_ns;
	}
	pthread_mutex_unlock(&budget->lock);
	return slept_ns;
}

void tt_pacer_budget_release(struct tt_pacer_budget *budget, uint64_t bytes)
{
	if (bytes == 0)
		return;
	pthread_mutex_lock(&budget->lock);
	assert(budget->used_bytes >= bytes);
	budget->used_bytes -= bytes;
	if (budget->waiters > 0)
		pthread_cond_broadcast(&budget->freed);
	pthread_mutex_unlock(&budget->lock);
}

uint64_t tt_pacer_budget_window(const struct tt_pacer_budget *budget, uint64_t wish_bytes)
{
	const uint64_t folio = UINT64_C(2) << 20, small = UINT64_C(64) << 10;
	uint64_t most = budget->total_bytes / 4;

	if (wish_bytes > most)
		wish_bytes = most;
	if (wish_bytes < folio && most >= folio)
		return folio;
	if (wish_bytes >= folio)
		return wish_bytes / folio * folio;
	return wish_bytes < small ? small : wish_bytes / small * small;
}

void tt_pacer_budget_stats(struct tt_pacer_budget *budget, uint64_t *ret_peak_bytes,
	uint64_t *ret_wait_ns, uint64_t *ret_used_bytes)
{
	pthread_mutex_lock(&budget->lock);
	*ret_peak_bytes = budget->peak_bytes;
	*ret_wait_ns = budget->wait_ns;
	*ret_used_bytes = budget->used_bytes;
	pthread_mutex_unlock(&budget->lock);
}

static uint64_t budget_read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long number = UINT64_MAX;

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%llu", &number) != 1) /* "max" */
		number = UINT64_MAX;
	fclose(file);
	return number;
}

/* The tightest limit from `group` up to the root of a hierarchy mounted at `mount`. */
static uint64_t budget_group_limit(const char *mount, const char *group, const char *file_name)
{
	char path[4096], below[2048];
	uint64_t tightest = UINT64_MAX;

	if (strlen(group) >= sizeof below)
		return UINT64_MAX;
	strcpy(below, group);
	for (;;) {
		if (snprintf(path, sizeof path, "%s%s/%s", mount, below, file_name)
			< (int)sizeof path) {
			uint64_t limit = budget_read_number(path);

			if (limit < tightest)
				tightest = limit;
		}
		char *slash = strrchr(below, '/');

		if (!slash || below[0] == '\0')
			return tightest;
		*slash = '\0';
	}
}

uint64_t tt_pacer_memory_limit(void)
{
	struct sysinfo info;
	uint64_t tightest =
		sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : UINT64_MAX;
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[2048];

	while (file && fgets(line, sizeof line, file)) {
		/* "4:memory:/path" in version 1, "0::/path" in version 2 */
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
		uint64_t limit = UINT64_MAX;

		if (!group)
			continue;
		*group++ = '\0';
		group[strcspn(group, "\n")] = '\0';
		if (strcmp(names + 1, "memory") == 0) {
			limit = budget_group_limit(
				"/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
		} else if (names[1] == '\0') {
			uint64_t high = budget_group_limit("/sys/fs/cgroup", group, "memory.high");

			limit = budget_group_limit("/sys/fs/cgroup", group, "memory.max");
			limit = high < limit ? high : limit;
		}
		if (limit < tightest)
			tightest = limit;
	}
	if (file)
		fclose(file);
	return tightest;
}

uint64_t tt_pacer_default_budget(void)
{
	const uint64_t most = UINT64_C(48) << 20, least = UINT64_C(1) << 20;
	uint64_t quarter = tt_pacer_memory_limit() / 4;

	if (quarter > most)
		return most;
	return quarter < least ? least : quarter;
}
