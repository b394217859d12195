/* SPDX-License-Identifier: MIT */
/*
 * A few threads that make the system calls which the ring would make, in the order of submission.
 * Threads are started when there is more to do than threads, up to the limit.
 */
#include "sys/ring_twin.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "sys/fd.h"

struct tt_ring_twin {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* requests, or the end */
	pthread_cond_t ready; /* completions, or woken */
	/* guarded by lock */
	struct tt_ring_request *requests; /* circular, depth entries */
	struct tt_ring_completion *completions;
	unsigned request_head, request_count;
	unsigned completion_head, completion_count;
	unsigned idle, started;
	bool woken, ending;
	/* constant */
	unsigned depth, workers;
	pthread_t threads[];
};

static int64_t twin_perform(const struct tt_ring_request *request)
{
	int r = 0;

	switch (request->op) {
	case TT_RING_READ:
		return tt_fd_pread(request->fd, request->buffer, request->length, request->offset,
			request->flags);
	case TT_RING_WRITE:
		return tt_fd_pwrite(request->fd, request->buffer, request->length, request->offset,
			request->flags);
	case TT_RING_SYNC_RANGE:
		r = sync_file_range(request->fd, (off_t)request->offset, (off_t)request->length,
			(unsigned)request->flags);
		break;
	case TT_RING_DROP:
		return -posix_fadvise(request->fd, (off_t)request->offset, (off_t)request->length,
			POSIX_FADV_DONTNEED);
	case TT_RING_FSYNC:
		r = fsync(request->fd);
		break;
	case TT_RING_FDATASYNC:
		r = fdatasync(request->fd);
		break;
	}
	return r < 0 ? -errno : 0;
}

static void *twin_thread(void *argument)
{
	struct tt_ring_twin *twin = argument;

	pthread_mutex_lock(&twin->lock);
	for (;;) {
		while (twin->request_count == 0 && !twin->ending) {
			twin->idle++;
			pthread_cond_wait(&twin->work, &twin->lock);
			twin->idle--;
		}
		if (twin->request_count == 0)
			break;
		struct tt_ring_request request = twin->requests[twin->request_head];

		twin->request_head = (twin->request_head + 1) % twin->depth;
		twin->request_count--;
		pthread_mutex_unlock(&twin->lock);
		int64_t result = twin_perform(&request);

		pthread_mutex_lock(&twin->lock);
		unsigned at = (twin->completion_head + twin->completion_count++) % twin->depth;

		twin->completions[at] =
			(struct tt_ring_completion){.token = request.token, .result = result};
		pthread_cond_signal(&twin->ready);
	}
	pthread_mutex_unlock(&twin->lock);
	return NULL;
}

int tt_ring_twin_new(unsigned depth, unsigned workers, struct tt_ring_twin **ret_twin)
{
	struct tt_ring_twin *twin = calloc(1, sizeof *twin + workers * sizeof *twin->threads);

	if (!twin)
		return -ENOMEM;
	twin->depth = depth;
	twin->workers = workers;
	twin->requests = calloc(depth, sizeof *twin->requests);
	twin->completions = calloc(depth, sizeof *twin->completions);
	pthread_mutex_init(&twin->lock, NULL);
	pthread_cond_init(&twin->work, NULL);
	pthread_cond_init(&twin->ready, NULL);
	/* One thread now, so that a failure to start any is known here. */
	int r = !twin->requests || !twin->completions
			? ENOMEM
			: pthread_create(&twin->threads[0], NULL, twin_thread, twin);

	if (r != 0) {
		tt_ring_twin_free(twin);
		return -r;
	}
	twin->started = 1;
	*ret_twin = twin;
	return 0;
}

void tt_ring_twin_free(struct tt_ring_twin *twin)
{
	if (!twin)
		return;
	pthread_mutex_lock(&twin->lock);
	twin->ending = true;
	pthread_cond_broadcast(&twin->work);
	pthread_mutex_unlock(&twin->lock);
	for (unsigned i = 0; i < twin->started; i++)
		pthread_join(twin->threads[i], NULL);
	pthread_mutex_destroy(&twin->lock);
	pthread_cond_destroy(&twin->work);
	pthread_cond_destroy(&twin->ready);
	free(twin->requests);
	free(twin->completions);
	free(twin);
}

void tt_ring_twin_submit(struct tt_ring_twin *twin, const struct tt_ring_request *request)
{
	pthread_mutex_lock(&twin->lock);
	twin->requests[(twin->request_head + twin->request_count++) % twin->depth] = *request;
	if (twin->idle < twin->request_count && twin->started < twin->workers
		&& pthread_create(&twin->threads[twin->started], NULL, twin_thread, twin) == 0)
		twin->started++;
	pthread_cond_signal(&twin->work);
	pthread_mutex_unlock(&twin->lock);
}

int tt_ring_twin_wait(struct tt_ring_twin *twin, bool wait, struct tt_ring_completion *ret)
{
	int r = 0;

	pthread_mutex_lock(&twin->lock);
	while (wait && twin->completion_count == 0 && !twin->woken)
		pthread_cond_wait(&twin->ready, &twin->lock);
	if (twin->completion_count > 0) {
		*ret = twin->completions[twin->completion_head];
		twin->completion_head = (twin->completion_head + 1) % twin->depth;
		twin->completion_count--;
		r = 1;
	} else if (wait) {
		twin->woken = false;
	}
	pthread_mutex_unlock(&twin->lock);
	return r;
}

void tt_ring_twin_wake(struct tt_ring_twin *twin)
{
	pthread_mutex_lock(&twin->lock);
	twin->woken = true;
	pthread_cond_signal(&twin->ready);
	pthread_mutex_unlock(&twin->lock);
}
