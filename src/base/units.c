/* SPDX-License-Identifier: MIT */
/*
 * Sizes in and numbers out. Both were held against rsync 3.5.0 (--max-size and --stats with -h
 * levels). Two inputs that rsync takes are refused: the empty text and a suffix alone, which it
 * reads as 0.
 */
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool units_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Reads "123", "1.5", ".5", "5.". Saturates at LDBL's precision, which is 64 bits on amd64. */
static const char *units_parse_decimal(const char *text, long double *ret_value)
{
	long double value = 0, place = 1;
	bool digits = false;

	for (; units_is_digit(*text); text++, digits = true)
		value = value * 10 + (*text - '0');
	if (*text == '.') {
		for (text++; units_is_digit(*text); text++, digits = true) {
			place /= 10;
			value += place * (*text - '0');
		}
	}
	if (!digits)
		return NULL;
	*ret_value = value;
	return text;
}

/* Reads a suffix, or nothing. */
static const char *units_parse_suffix(
	const char *text, char default_suffix, long double *ret_factor)
{
	static const char letters[] = "bkmgtp";
	char letter = *text;
	const char *found;
	unsigned power, base = 1024;
	long double factor = 1;

	if (letter && letter != '+' && letter != '-')
		text++;
	else
		letter = default_suffix;
	letter = (char)(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
	found = strchr(letters, letter);
	if (!letter || !found)
		return NULL;
	power = (unsigned)(found - letters);

	if (power > 0 && strncasecmp(text, "ib", 2) == 0) {
		text += 2;
	} else if (power > 0 && (*text == 'b' || *text == 'B')) {
		text++;
		base = 1000;
	}
	while (power-- > 0)
		factor *= base;
	*ret_factor = factor;
	return text;
}

int tt_units_parse_size(const char *text, char default_suffix, uint64_t *ret_bytes)
{
	long double value, factor;

	text = units_parse_decimal(text, &value);
	if (!text)
		return -EINVAL;
	text = units_parse_suffix(text, default_suffix, &factor);
	if (!text)
		return -EINVAL;
	value *= factor;
	/* File sizes are signed 64 bits; above that nothing can be meant. */
	if (value >= 9223372036854775807.0L)
		return -ERANGE;

	uint64_t bytes = (uint64_t)value;
	if (strcmp(text, "+1") == 0)
		bytes++;
	else if (strcmp(text, "-1") == 0 && bytes > 0)
		bytes--;
	else if (strcmp(text, "-1") == 0)
		return -ERANGE;
	else if (*text)
		return -EINVAL;
	*ret_bytes = bytes;
	return 0;
}

int tt_units_parse_number(const char *text, int64_t min, int64_t max, int64_t *ret_number)
{
	const char *digits = *text == '-' || *text == '+' ? text + 1 : text;
	long long value;
	char *end;

	if (!units_is_digit(*digits))
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end)
		return -EINVAL;
	if (errno == ERANGE || value < min || value > max)
		return -ERANGE;
	*ret_number = value;
	return 0;
}

/* "1234567.50" to "1,234,567.50". */
static void units_insert_commas(const char *plain, char *buffer, size_t size)
{
	size_t whole = strcspn(plain, "."), used = 0;

	for (size_t i = 0; plain[i] && used + 2 < size; i++) {
		if (i > 0 && i < whole && (whole - i) % 3 == 0 && units_is_digit(plain[i - 1]))
			buffer[used++] = ',';
		buffer[used++] = plain[i];
	}
	buffer[used] = '\0';
}

static bool units_format_scaled(double number, int level, char *buffer, size_t size)
{
	static const char letters[] = "KMGTP";
	double unit = level == 2 ? 1000 : 1024;
	unsigned power = 0;

	if (level < 2 || number < unit)
		return false;
	for (number /= unit; number >= unit && letters[power + 1]; power++)
		number /= unit;
	snprintf(buffer, size, "%.2f%c", number, letters[power]);
	return true;
}

const char *tt_units_format(uint64_t number, int level, char *buffer, size_t size)
{
	char plain[32];

	if (size == 0 || units_format_scaled((double)number, level, buffer, size))
		return buffer;
	snprintf(plain, sizeof(plain), "%" PRIu64, number);
	if (level == 0)
		snprintf(buffer, size, "%s", plain);
	else
		units_insert_commas(plain, buffer, size);
	return buffer;
}

const char *tt_units_format_double(double number, int level, char *buffer, size_t size)
{
	char plain[400]; /* DBL_MAX has 309 digits before the point */

	if (size == 0 || units_format_scaled(number, level, buffer, size))
		return buffer;
	snprintf(plain, sizeof(plain), "%.2f", number);
	if (level == 0)
		snprintf(buffer, size, "%s", plain);
	else
		units_insert_commas(plain, buffer, size);
	return buffer;
}
