/* SPDX-License-Identifier: MIT */
/*
 * The only file that knows liburing. See ring.h.
 *
 * Reads and writes of regular files are sent to io-wq at once (IOSQE_ASYNC): an inline attempt
 * would copy in the submitting thread, which is meant to overlap with it, and buffered writes punt
 * there anyway on ext4 (no FOP_BUFFER_WASYNC).
 */
#include "sys/ring.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sys/facility.h"
#include "sys/ring_twin.h"

struct tt_ring {
	struct tt_ring_twin *twin; /* not NULL: everything goes there */
	struct io_uring uring;
	int wake_fd; /* eventfd; a read of it is always in flight, so that a wake is a completion */
	uint64_t wake_count;       /* where that read goes */
	unsigned depth, in_flight; /* in_flight does not count the read of wake_fd */
	bool woken;
};

static struct io_uring_sqe *ring_sqe(struct tt_ring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

	if (!sqe) {
		/* The queue has room for depth + 1, so it only fills with entries that wait for the
		 * next enter. */
		io_uring_submit(&ring->uring);
		sqe = io_uring_get_sqe(&ring->uring);
	}
	assert(sqe);
	return sqe;
}

static void ring_arm_wake(struct tt_ring *ring)
{
	struct io_uring_sqe *sqe = ring_sqe(ring);

	io_uring_prep_read(sqe, ring->wake_fd, &ring->wake_count, sizeof ring->wake_count, 0);
	io_uring_sqe_set_data(sqe, NULL);
}

/* Newest set-up flags first; a kernel that does not know one says EINVAL. */
static int ring_open(struct tt_ring *ring)
{
	static const unsigned flags[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN
			| IORING_SETUP_CLAMP, /* 6.1 */
		IORING_SETUP_CLAMP,           /* 5.6 */
	};
	int r = -ENOSYS;

	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		struct io_uring_params params = {.flags = flags[i]};

		r = io_uring_queue_init_params(ring->depth + 1, &ring->uring, &params);
		if (r != -EINVAL)
			break;
	}
	return r;
}

/* The operations that tiptoe needs came by 5.6; a kernel or sandbox without them gets the twin. */
static int ring_check_operations(struct tt_ring *ring)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&ring->uring);
	bool all = probe && io_uring_opcode_supported(probe, IORING_OP_READ)
		   && io_uring_opcode_supported(probe, IORING_OP_WRITE)
		   && io_uring_opcode_supported(probe, IORING_OP_SYNC_FILE_RANGE)
		   && io_uring_opcode_supported(probe, IORING_OP_FADVISE)
		   && io_uring_opcode_supported(probe, IORING_OP_FSYNC);

	if (probe)
		io_uring_free_probe(probe);
	return all ? 0 : -EOPNOTSUPP;
}

static int ring_init_uring(struct tt_ring *ring, unsigned workers)
{
	unsigned limits[2] = {workers, workers};

	ring->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (ring->wake_fd < 0)
		return -errno;
	int r = ring_open(ring);

	if (r < 0) {
		close(ring->wake_fd);
		return r;
	}
	r = ring_check_operations(ring);
	if (r == 0) {
		/* Limited since Linux 5.15; before, the kernel's own limit holds. */
		(void)io_uring_register_iowq_max_workers(&ring->uring, limits);
		ring_arm_wake(ring);
		/* A sandbox may allow the set-up and forbid io_uring_enter. */
		r = io_uring_submit(&ring->uring);
	}
	if (r < 0) {
		io_uring_queue_exit(&ring->uring);
		close(ring->wake_fd);
		return r;
	}
	return 0;
}

int tt_ring_new(const struct tt_ring_config *config, struct tt_ring **ret_ring, int *ret_refusal)
{
	struct tt_ring *ring = calloc(1, sizeof *ring);
	int refusal = 0;

	if (!ring)
		return -ENOMEM;
	ring->depth = config->depth;
	ring->wake_fd = -1;
	int r = config->no_uring ? -ENOSYS : tt_facility_refusal(TT_FACILITY_IO_URING);

	if (r == 0) {
		r = ring_init_uring(ring, config->workers);
		/* Not what may pass: no memory, no descriptors. */
		if (tt_facility_may_be_refusal(r) || r == -EOPNOTSUPP)
			tt_facility_refuse(TT_FACILITY_IO_URING, r);
	}
	if (r < 0) {
		refusal = r;
		r = tt_ring_twin_new(config->depth, config->workers, &ring->twin);
	}
	if (r < 0) {
		free(ring);
		return r;
	}
	if (ret_refusal)
		*ret_refusal = refusal;
	*ret_ring = ring;
	return 0;
}

void tt_ring_free(struct tt_ring *ring)
{
	struct tt_ring_completion completion;

	if (!ring)
		return;
	while (ring->in_flight > 0) {
		if (tt_ring_wait(ring, true, &completion) < 0)
			break;
	}
	if (ring->twin) {
		tt_ring_twin_free(ring->twin);
	} else {
		io_uring_queue_exit(&ring->uring);
		close(ring->wake_fd);
	}
	free(ring);
}

bool tt_ring_is_twin(const struct tt_ring *ring)
{
	return ring->twin;
}

unsigned tt_ring_in_flight(const struct tt_ring *ring)
{
	return ring->in_flight;
}

static void ring_prepare(struct io_uring_sqe *sqe, const struct tt_ring_request *request)
{
	switch (request->op) {
	case TT_RING_READ:
		io_uring_prep_read(sqe, request->fd, request->buffer, (unsigned)request->length,
			request->offset);
		sqe->rw_flags = request->flags;
		break;
	case TT_RING_WRITE:
		io_uring_prep_write(sqe, request->fd, request->buffer, (unsigned)request->length,
			request->offset);
		sqe->rw_flags = request->flags;
		break;
	case TT_RING_SYNC_RANGE:
		/* liburing 2.3 takes the length as unsigned: 4 GiB and more mean "to the end" here,
		 * which is what callers use. */
		io_uring_prep_sync_file_range(sqe, request->fd, (unsigned)request->length,
			request->offset, request->flags);
		break;
	case TT_RING_DROP:
		io_uring_prep_fadvise(sqe, request->fd, request->offset, (off_t)request->length,
			POSIX_FADV_DONTNEED);
		break;
	case TT_RING_FSYNC:
		io_uring_prep_fsync(sqe, request->fd, 0);
		break;
	case TT_RING_FDATASYNC:
		io_uring_prep_fsync(sqe, request->fd, IORING_FSYNC_DATASYNC);
		break;
	}
	sqe->flags |= IOSQE_ASYNC;
}

int tt_ring_submit(struct tt_ring *ring, const struct tt_ring_request *request)
{
	assert(request->token);
	assert(request->length <= UINT32_MAX);
	if (ring->in_flight >= ring->depth)
		return -EBUSY;
	ring->in_flight++;
	if (ring->twin) {
		tt_ring_twin_submit(ring->twin, request);
		return 0;
	}
	struct io_uring_sqe *sqe = ring_sqe(ring);

	ring_prepare(sqe, request);
	io_uring_sqe_set_data(sqe, request->token);
	return 0;
}

void tt_ring_start(struct tt_ring *ring)
{
	if (!ring->twin)
		io_uring_submit(&ring->uring);
}

static int ring_pull(struct tt_ring *ring, bool wait, struct tt_ring_completion *ret)
{
	for (;;) {
		struct io_uring_cqe *cqe = NULL;
		int r = io_uring_peek_cqe(&ring->uring, &cqe);

		if (r < 0 || !cqe) {
			if (ring->woken && wait) {
				ring->woken = false;
				return 0;
			}
			r = wait ? io_uring_submit_and_wait(&ring->uring, 1)
				 : io_uring_submit(&ring->uring);
			if (r < 0 && r != -EINTR && r != -EBUSY)
				return r;
			if (wait)
				continue;
			if (io_uring_peek_cqe(&ring->uring, &cqe) < 0 || !cqe)
				return 0;
		}
		void *token = io_uring_cqe_get_data(cqe);
		int result = cqe->res;

		io_uring_cqe_seen(&ring->uring, cqe);
		if (!token) {
			ring->woken = true;
			ring_arm_wake(ring);
			continue;
		}
		*ret = (struct tt_ring_completion){.token = token, .result = result};
		return 1;
	}
}

int tt_ring_wait(struct tt_ring *ring, bool wait, struct tt_ring_completion *ret)
{
	int r = ring->twin ? tt_ring_twin_wait(ring->twin, wait, ret) : ring_pull(ring, wait, ret);

	if (r > 0)
		ring->in_flight--;
	return r;
}

void tt_ring_wake(struct tt_ring *ring)
{
	const uint64_t one = 1;

	if (ring->twin)
		tt_ring_twin_wake(ring->twin);
	else if (write(ring->wake_fd, &one, sizeof one) < 0)
		assert(errno
			== EAGAIN); /* the counter is full: somebody has woken it often enough */
}
