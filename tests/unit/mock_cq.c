// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "mock_state.h"

static void notify(struct mock_cq *cq, bool solicited)
{
	struct mock_event ev = { .cq = &cq->cq };

	if (!cq->armed || (cq->armed == 2 && !solicited))
		return;
	cq->armed = 0;
	if (cq->cq.channel)
		mock_events_push(&((struct mock_channel *)cq->cq.channel)->events, &ev);
}

void mock_cq_push(struct ibv_cq *ibcq, const struct mock_cqe *cqe, bool solicited)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	struct mock_cqe *at;

	if (cq->n == cq->size) {
		mock.overruns++;
		if (!cq->overrun)
			mock_async(ibcq->context, IBV_EVENT_CQ_ERR, ibcq);
		cq->overrun = true;
		return;
	}
	at = &cq->ring[(cq->head + cq->n++) % cq->size];
	*at = *cqe;
	at->cycles = mock_cycles(mock_context(ibcq->context)->device);
	at->wallclock_ns = mock_wallclock_ns();
	notify(cq, solicited || cqe->wc.status != IBV_WC_SUCCESS);
}

/* A polled completion frees the slots up to its own. */
static void free_slots(const struct mock_cqe *cqe)
{
	struct mock_qp *qp;

	if (cqe->srq) {
		cqe->srq->given--;
		return;
	}
	qp = mock_find_qp(cqe->wc.qp_num);
	if (!qp || qp->life != cqe->life)
		return;
	if (cqe->is_send)
		qp->sq.tail = cqe->index + 1;
	else
		qp->rq.tail = cqe->index + 1;
}

static bool pop(struct mock_cq *cq, struct ibv_wc *wc)
{
	if (!cq->n)
		return false;
	*wc = cq->ring[cq->head].wc;
	cq->current_cycles = cq->ring[cq->head].cycles;
	cq->current_wallclock_ns = cq->ring[cq->head].wallclock_ns;
	free_slots(&cq->ring[cq->head]);
	cq->head = (cq->head + 1) % cq->size;
	cq->n--;
	return true;
}

int mock_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	int i = 0;

	mock_lock();
	while (i < n && pop(cq, wc + i))
		i++;
	mock_unlock();
	return i;
}

int mock_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;

	mock_lock();
	if (cq->armed != 1)
		cq->armed = 1 + !!solicited_only;
	mock_unlock();
	return 0;
}

struct mock_cq *mock_cq_create(struct ibv_context *c, int cqe, void *context,
			       struct ibv_comp_channel *channel)
{
	struct mock_cq *cq = mock_zalloc(sizeof(*cq));
	int err;

	mock_lock();
	mock.asked_cqe = cqe;
	err = mock_failing("ibv_create_cq");
	if (!err && (cqe < 1 || cqe > mock_context(c)->device->max_cqe))
		err = EINVAL;
	if (!err) {
		cq->cq.handle = ++mock.handles;
		mock.live[MOCK_CQ]++;
		if (channel)
			channel->refcnt++;
		cq->next = mock.cqs;
		mock.cqs = cq;
	}
	mock_unlock();
	if (err) {
		free(cq);
		errno = err;
		return NULL;
	}
	cq->cq.context = c;
	cq->cq.channel = channel;
	cq->cq.cq_context = context;
	cq->cq.cqe = cqe;
	cq->size = cqe;
	cq->ring = mock_zalloc(cqe * sizeof(*cq->ring));
	pthread_mutex_init(&cq->cq.mutex, NULL);
	pthread_cond_init(&cq->cq.cond, NULL);
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct mock_cq *cq;

	if (vector < 0 || vector >= c->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = mock_cq_create(c, cqe, context, channel);
	return cq ? &cq->cq : NULL;
}

int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq;
	struct mock_cqe *ring;
	unsigned int i;
	int ret;

	mock_lock();
	ret = mock_failing("ibv_resize_cq");
	if (!ret && (cqe < (int)cq->n || cqe < 1 ||
		     cqe > mock_context(ibcq->context)->device->max_cqe))
		ret = EINVAL;
	if (!ret) {
		ring = mock_zalloc(cqe * sizeof(*ring));
		for (i = 0; i < cq->n; i++)
			ring[i] = cq->ring[(cq->head + i) % cq->size];
		free(cq->ring);
		cq->ring = ring;
		cq->head = 0;
		cq->size = cq->cq.cqe = cqe;
		mock.asked_cqe = cqe;
	}
	mock_unlock();
	return ret;
}

int mock_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	(void)cq;
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	mock_lock();
	mock.moderation = attr->moderate;
	mock_unlock();
	return 0;
}

void mock_last_moderation(unsigned int *count, unsigned int *period)
{
	mock_lock();
	*count = mock.moderation.cq_count;
	*period = mock.moderation.cq_period;
	mock.moderation = (struct ibv_moderate_cq){ 0 };
	mock_unlock();
}

static bool is_of_cq(const struct mock_event *ev, void *cq)
{
	return ev->cq == cq;
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct mock_cq *cq = (struct mock_cq *)ibcq, **at;

	mock_lock();
	if (cq->users) {
		mock_unlock();
		return EBUSY;
	}
	if (ibcq->channel) {
		mock_events_drop(&((struct mock_channel *)ibcq->channel)->events, is_of_cq, cq);
		ibcq->channel->refcnt--;
	}
	mock_async_drop(ibcq->context, cq);
	for (at = &mock.cqs; *at != cq; at = &(*at)->next)
		;
	*at = cq->next;
	mock.live[MOCK_CQ]--;
	mock_unlock();

	pthread_mutex_lock(&ibcq->mutex);
	while (ibcq->comp_events_completed != cq->comp_events_given)
		pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
	pthread_mutex_unlock(&ibcq->mutex);
	free(cq->ring);
	free(cq);
	return 0;
}

/* --- the extended interface --- */

static int next_poll(struct ibv_cq_ex *ex)
{
	struct mock_cq *cq = (struct mock_cq *)ex;

	if (!pop(cq, &cq->current))
		return ENOENT;
	ex->wr_id = cq->current.wr_id;
	ex->status = cq->current.status;
	return 0;
}

/* Held until end_poll, as a provider holds its CQ's lock. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	mock_lock();
	ret = next_poll(ex);
	if (ret)
		mock_unlock();
	return ret;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
	mock_unlock();
}

#define READ(type, name, field)						\
	static type read_##name(struct ibv_cq_ex *ex)			\
	{								\
		return ((struct mock_cq *)ex)->current.field;		\
	}

READ(enum ibv_wc_opcode, opcode, opcode)
READ(uint32_t, vendor_err, vendor_err)
READ(uint32_t, byte_len, byte_len)
READ(__be32, imm_data, imm_data)
READ(uint32_t, qp_num, qp_num)
READ(uint32_t, src_qp, src_qp)
READ(unsigned int, wc_flags, wc_flags)
READ(uint32_t, slid, slid)
READ(uint8_t, sl, sl)
READ(uint8_t, dlid_path_bits, dlid_path_bits)

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return ((struct mock_cq *)ex)->current_cycles;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return ((struct mock_cq *)ex)->current_wallclock_ns;
}

struct ibv_cq_ex *mock_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t known = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_TM_INFO;
	struct mock_cq *cq;

	if ((attr->wc_flags & ~known) ||
	    attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = mock_cq_create(c, attr->cqe, attr->cq_context, attr->channel);
	if (!cq)
		return NULL;
	cq->ex.start_poll = start_poll;
	cq->ex.next_poll = next_poll;
	cq->ex.end_poll = end_poll;
	cq->ex.read_opcode = read_opcode;
	cq->ex.read_vendor_err = read_vendor_err;
	cq->ex.read_wc_flags = read_wc_flags;
	cq->ex.read_byte_len = read_byte_len;
	cq->ex.read_imm_data = read_imm_data;
	cq->ex.read_qp_num = read_qp_num;
	cq->ex.read_src_qp = read_src_qp;
	cq->ex.read_slid = read_slid;
	cq->ex.read_sl = read_sl;
	cq->ex.read_dlid_path_bits = read_dlid_path_bits;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->ex.read_completion_ts = read_completion_ts;
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->ex.read_completion_wallclock_ns = read_completion_wallclock_ns;
	return &cq->ex;
}
