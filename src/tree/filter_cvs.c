/* SPDX-License-Identifier: MIT */
/*
 * See filter_cvs.h.
 */
#include "tree/filter_cvs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* rsync(1), --cvs-exclude. These are perishable: they do not keep a directory from being deleted.
 */
static const char cvs_names[] = "RCS SCCS CVS CVS.adm RCSLOG cvslog.* tags TAGS .make.state "
				".nse_depinfo *~ #* .#* ,* _$* *$ *.old *.bak *.BAK *.orig *.rej "
				".del-* *.a *.olb *.o *.obj *.so *.exe *.Z *.elc *.ln core "
				".svn/ .git/ .hg/ .bzr/";

static int cvs_fill(struct tt_filter_parser *outer, uint32_t flags)
{
	struct tt_filter *filter = outer->filter;
	struct tt_filter_points none = {0};
	struct tt_filter_parser parser = {
		.filter = filter,
		.reader = outer->reader,
		.arena = &filter->cvs_arena,
		.points = &none,
		.error = outer->error,
	};
	const char *home = getenv("HOME"), *more = getenv("CVSIGNORE");
	char path[PATH_MAX];
	int r = tt_filter_parse_text(
		&parser, &filter->cvs, cvs_names, flags | TT_FILTER_RULE_PERISHABLE, 0);

	if (r >= 0 && home
		&& (size_t)snprintf(path, sizeof path, "%s/.cvsignore", home) < sizeof path) {
		/* As in rsync, it need not be there. */
		if (access(path, R_OK) == 0)
			r = tt_filter_parse_file(&parser, &filter->cvs, path, flags, 0);
	}
	if (r >= 0 && more)
		r = tt_filter_parse_text(&parser, &filter->cvs, more, flags, 0);
	return r;
}

int tt_filter_cvs_make(struct tt_filter_parser *parser, uint32_t flags)
{
	struct tt_filter *filter = parser->filter;
	int r = 0;

	pthread_mutex_lock(&filter->cvs_lock);
	if (!filter->cvs_made)
		r = cvs_fill(parser, flags);
	filter->cvs_made = true;
	pthread_mutex_unlock(&filter->cvs_lock);
	return r;
}
