/* SPDX-License-Identifier: MIT */
/*
 * See faultfs_rules.h.
 */
#include "faultfs_rules.h"

#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MOST_RULES 64

struct rule {
	char operation[16], outcome[32], pattern[256];
	unsigned first, last; /* of the times that it applies to */
	unsigned met;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *rules_path, *log_path;
static struct stat rules_stat;
static struct rule rules[MOST_RULES];
static unsigned rule_count;

static int error_number(const char *name)
{
	for (int i = 1; i < 140; i++) {
		const char *known = strerrorname_np(i);

		if (known && !strcmp(known, name)) {
			return i;
		}
	}
	return 0;
}

static void parse_when(struct rule *rule, const char *when)
{
	char *end;

	rule->first = 1;
	rule->last = UINT32_MAX;
	if (!strcmp(when, "*")) {
		return;
	}
	rule->first = (unsigned)strtoul(when, &end, 10);
	if (*end != '+') {
		rule->last = rule->first;
	}
}

/* With the lock held. */
static void read_rules(void)
{
	struct stat now;
	char line[512], when[16];
	FILE *file;

	if (!rules_path || stat(rules_path, &now) < 0) {
		rule_count = 0;
		rules_stat.st_ino = 0;
		return;
	}
	if (now.st_ino == rules_stat.st_ino && now.st_mtim.tv_sec == rules_stat.st_mtim.tv_sec
		&& now.st_mtim.tv_nsec == rules_stat.st_mtim.tv_nsec
		&& now.st_size == rules_stat.st_size) {
		return;
	}
	rules_stat = now;
	rule_count = 0;
	file = fopen(rules_path, "re");
	while (file && rule_count < MOST_RULES && fgets(line, sizeof(line), file)) {
		struct rule *rule = &rules[rule_count];

		*rule = (struct rule){0};
		if (sscanf(line, "%15s %31s %15s %255[^\n]", rule->operation, rule->outcome, when,
			    rule->pattern)
			!= 4) {
			continue;
		}
		parse_when(rule, when);
		rule_count++;
	}
	if (file) {
		fclose(file);
	}
}

void fault_begin(const char *path, const char *log)
{
	rules_path = path;
	log_path = log;
}

static bool is_of(const char *operation, const char *wanted)
{
	if (!strcmp(wanted, "any") || !strcmp(wanted, operation)) {
		return true;
	}
	return !strcmp(wanted, "setattr")
	       && (!strcmp(operation, "chmod") || !strcmp(operation, "chown")
		       || !strcmp(operation, "truncate") || !strcmp(operation, "utimens"));
}

static bool is_about(const struct rule *rule, const char *name, const char *other)
{
	return fnmatch(rule->pattern, name, 0) == 0
	       || (other && fnmatch(rule->pattern, other, 0) == 0);
}

/* With the lock held. */
static void write_log(const char *operation, const char *name, const char *outcome)
{
	FILE *file = log_path ? fopen(log_path, "ae") : NULL;

	if (file) {
		fprintf(file, "%s %s %s\n", operation, name, outcome);
		fclose(file);
	}
}

struct fault fault_judge(const char *operation, const char *name, const char *other)
{
	struct fault fault = {.short_bytes = SIZE_MAX};
	unsigned long delay_ms = 0;

	pthread_mutex_lock(&lock);
	read_rules();
	for (unsigned i = 0; i < rule_count; i++) {
		struct rule *rule = &rules[i];

		if (!is_of(operation, rule->operation) || !is_about(rule, name, other)) {
			continue;
		}
		rule->met++;
		if (rule->met < rule->first || rule->met > rule->last) {
			continue;
		}
		if (!strncmp(rule->outcome, "delay=", 6)) {
			delay_ms = strtoul(rule->outcome + 6, NULL, 10);
		} else if (!strncmp(rule->outcome, "short=", 6)) {
			fault.short_bytes = strtoul(rule->outcome + 6, NULL, 10);
		} else {
			fault.error = error_number(rule->outcome);
		}
		write_log(operation, name, rule->outcome);
		break;
	}
	pthread_mutex_unlock(&lock);
	if (delay_ms > 0) {
		nanosleep(&(struct timespec){.tv_sec = (time_t)(delay_ms / 1000),
				  .tv_nsec = (long)(delay_ms % 1000) * 1000000},
			NULL);
	}
	return fault;
}
