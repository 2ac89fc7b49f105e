// SPDX-License-Identifier: GPL-2.0
/*
 * The subnet manager as each InfiniBand port sees it. One work item per port does everything: MAD
 * callbacks and events only leave a note for it. Who the subnet manager is, PortInfo says: it is
 * read again at each event that may mean another one, and when somebody else reports.
 */
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>

#include "device.h"
#include "sa.h"
#include "sa_ask.h"

static bool notices = true;
module_param(notices, bool, 0644);
MODULE_PARM_DESC(notices, "Listen to the subnet manager on devices that come from now on (default Y)");

#define STRANGER_GAP	HZ	/* PortInfo is not read more often for strangers */
#define TIMEOUT_MIN_MS	200
#define TIMEOUT_MAX_MS	5000

static struct workqueue_struct *sa_wq;

/* A Report that waits for the work. */
struct report {
	struct list_head node;
	bool relayed;
	struct ib_mad mad;
};

/**
 * repath_sa_kick - have the work run
 * @sp: port
 *
 * Context: any.
 */
void repath_sa_kick(struct repath_sa_port *sp)
{
	unsigned long flags;

	spin_lock_irqsave(&sp->lock, flags);
	if (!sp->ending)
		mod_delayed_work(sa_wq, &sp->work, 0);
	spin_unlock_irqrestore(&sp->lock, flags);
}

/**
 * repath_sa_want - have the work do something
 * @sp: port
 * @want: REPATH_SA_*
 *
 * Context: any.
 */
void repath_sa_want(struct repath_sa_port *sp, unsigned int want)
{
	set_bit(want, &sp->wants);
	repath_sa_kick(sp);
}

/* Somebody else than the subnet manager that we know: perhaps it is another one by now. */
static void heard_stranger(struct repath_sa_port *sp)
{
	unsigned long flags;
	bool look;

	repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_FORGED);
	spin_lock_irqsave(&sp->lock, flags);
	look = time_after_eq(jiffies, sp->looked + STRANGER_GAP);
	if (look)
		sp->looked = jiffies;
	spin_unlock_irqrestore(&sp->lock, flags);
	if (look)
		repath_sa_want(sp, REPATH_SA_LOOK);
}

/**
 * repath_sa_keep - keep a Report for the work
 * @sp: port
 * @mad: the Report, copied
 * @relayed: the hypervisor has told it
 *
 * Return: false: there are too many, and it is not kept.
 */
bool repath_sa_keep(struct repath_sa_port *sp, const struct ib_mad *mad, bool relayed)
{
	struct report *report = kmalloc(sizeof(*report), GFP_KERNEL);
	unsigned long flags;
	bool kept;

	if (report) {
		report->relayed = relayed;
		report->mad = *mad;
	}
	spin_lock_irqsave(&sp->lock, flags);
	kept = report && !sp->ending && sp->nreports < REPATH_SA_REPORTS;
	if (kept) {
		list_add_tail(&report->node, &sp->reports);
		sp->nreports++;
	} else {
		/* It is not answered, so it is repeated. */
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_DROPPED);
		kfree(report);
	}
	spin_unlock_irqrestore(&sp->lock, flags);
	repath_sa_kick(sp);
	return kept;
}

static void received(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
		     struct ib_mad_recv_wc *wc)
{
	struct repath_sa_port *sp = agent->context;

	if (buf) {
		repath_sa_answer(buf, wc);
		return;
	}
	/* Anybody may send to QP1; what comes from QP1 of the subnet manager's LID, only its host. */
	if (!repath_notice_is_report(wc->recv_buf.mad))
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_MALFORMED);
	else if (wc->wc->src_qp != 1 || wc->wc->slid != READ_ONCE(sp->sm_lid))
		heard_stranger(sp);
	else
		repath_sa_keep(sp, wc->recv_buf.mad, false);
	ib_free_recv_mad(wc);
}

static void forget_way(struct repath_sa_port *sp)
{
	WRITE_ONCE(sp->sm_lid, 0);
	if (sp->way)
		repath_sa_way_put(sp->way);
	sp->way = NULL;
}

static void be_down(struct repath_sa_port *sp)
{
	repath_sa_cancel(sp);
	forget_way(sp);
	sp->subscribed = false;
	sp->state = sp->on ? REPATH_SM_DOWN : REPATH_SM_OFF;
}

/* 4.096 us << n, and half as much again. */
static unsigned int lifetime_ms(u8 subnet_timeout)
{
	u64 ns = 6144ull << min_t(u8, subnet_timeout, 31);

	return clamp_t(u64, ns / NSEC_PER_MSEC, TIMEOUT_MIN_MS, TIMEOUT_MAX_MS);
}

/* Who is the subnet manager now? */
static void look(struct repath_sa_port *sp)
{
	struct ib_device *ibdev = sp->dev->ibdev;
	struct repath_sa_way *way;
	struct ib_port_attr attr;
	bool same;
	u16 lid;

	if (ib_query_port(ibdev, sp->port, &attr) || !sp->on ||
	    attr.state != IB_PORT_ACTIVE || !attr.sm_lid || attr.sm_lid > U16_MAX) {
		be_down(sp);
		return;
	}
	lid = attr.lid & ~((1 << attr.lmc) - 1);
	same = sp->way && sp->way->lid == attr.sm_lid && sp->sm_sl == attr.sm_sl &&
	       sp->lid == lid && sp->lmc == attr.lmc;
	if (same && !test_bit(REPATH_SA_RENEW, &sp->wants))
		return;

	repath_sa_cancel(sp);
	/* What the own LID was is of no use any more. */
	if (sp->lid != lid || sp->lmc != attr.lmc)
		repath_sa_forget(sp);
	way = repath_sa_way_new(sp->agent, sp->port, attr.sm_lid, attr.sm_sl,
				rdma_is_grh_required(ibdev, sp->port),
				cpu_to_be64(attr.subnet_prefix));
	if (IS_ERR(way) || rdma_query_gid(ibdev, sp->port, 0, &sp->gid)) {
		if (!IS_ERR(way))
			repath_sa_way_put(way);
		be_down(sp);
		return;
	}
	forget_way(sp);
	sp->way = way;
	sp->sm_sl = attr.sm_sl;
	sp->lid = lid;
	sp->lmc = attr.lmc;
	sp->timeout_ms = lifetime_ms(attr.subnet_timeout);
	sp->subscribed = false;
	WRITE_ONCE(sp->sm_lid, attr.sm_lid);
	set_bit(REPATH_SA_RENEW, &sp->wants);
}

static void take_answers(struct repath_sa_port *sp)
{
	struct repath_sa_ask *ask;

	for (;;) {
		spin_lock_irq(&sp->lock);
		ask = list_first_entry_or_null(&sp->answered, struct repath_sa_ask, node);
		if (ask)
			list_del(&ask->node);
		spin_unlock_irq(&sp->lock);
		if (!ask)
			return;
		/* Of another subnet manager, or of the same one before it came back. */
		if (ask->way == sp->way && ask->kind == REPATH_SA_SUBSCRIBE)
			repath_sa_subscribe_answered(sp, ask);
		else if (ask->way == sp->way && ask->kind == REPATH_SA_PATHS)
			repath_sa_query_answered(sp, ask);
		repath_sa_ask_free(ask);
	}
}

static void take_report(struct repath_sa_port *sp, const struct report *report)
{
	const struct ib_sa_mad *mad = (const void *)&report->mad;
	struct repath_notice notice;
	int err;

	/* It may have come from the one before. */
	if (!sp->way)
		return;
	if (!report->relayed)
		repath_sa_report_resp(sp, &report->mad);
	repath_stat_inc(sp->dev, report->relayed ? REPATH_STAT_NOTICE_RELAYED :
						   REPATH_STAT_NOTICE_RX);
	err = repath_notice_parse(&report->mad, &notice);
	notice.relayed = report->relayed;
	if (!err && repath_sa_heard(sp, &notice))
		repath_sa_hand_on(sp, mad->data);
	else if (err && err != -ENOMSG)
		repath_stat_inc(sp->dev, REPATH_STAT_NOTICE_MALFORMED);
}

static void take_reports(struct repath_sa_port *sp)
{
	struct report *report;

	for (;;) {
		spin_lock_irq(&sp->lock);
		report = list_first_entry_or_null(&sp->reports, struct report, node);
		if (report) {
			list_del(&report->node);
			sp->nreports--;
		}
		spin_unlock_irq(&sp->lock);
		if (!report)
			return;
		take_report(sp, report);
		kfree(report);
	}
}

static void sa_work(struct work_struct *work)
{
	struct repath_sa_port *sp = container_of(work, struct repath_sa_port, work.work);
	unsigned long next = jiffies + HZ * 3600;

	mutex_lock(&sp->mutex);
	if (test_and_clear_bit(REPATH_SA_LOOK, &sp->wants))
		look(sp);
	take_answers(sp);
	take_reports(sp);
	if (sp->way) {
		repath_sa_subscribe(sp, &next);
		repath_sa_not_heard(sp, &next);
		repath_sa_query(sp, &next);
		repath_sa_look_again(sp, &next);
	}
	repath_sa_tell_kernel(sp, &next);
	mutex_unlock(&sp->mutex);

	spin_lock_irq(&sp->lock);
	/* If it was queued meanwhile, that is earlier. */
	if (!sp->ending)
		queue_delayed_work(sa_wq, &sp->work, time_after(next, jiffies) ? next - jiffies : 0);
	spin_unlock_irq(&sp->lock);
}

static void sa_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct repath_device *dev = container_of(handler, struct repath_device, sa_events);
	struct repath_sa_port *sp;

	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		break;
	default:
		return;
	}
	/* The list is as it was when the handler was registered. */
	list_for_each_entry(sp, &dev->sa_ports, node) {
		if (sp->port != event->element.port_num)
			continue;
		if (event->event != IB_EVENT_PORT_ERR)
			set_bit(REPATH_SA_RENEW, &sp->wants);
		repath_sa_want(sp, REPATH_SA_LOOK);
	}
}

/**
 * repath_sa_woken - the system has slept: what was said meanwhile has not been heard
 * @dev: device
 *
 * To the subnet manager its ports may have been there all the while, and no event says so.
 *
 * Context: may sleep.
 */
void repath_sa_woken(struct repath_device *dev)
{
	struct repath_sa_port *sp;

	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node) {
		set_bit(REPATH_SA_RENEW, &sp->wants);
		repath_sa_want(sp, REPATH_SA_LOOK);
	}
	mutex_unlock(&dev->sa_mutex);
}

static struct repath_sa_port *port_new(struct repath_device *dev, u32 port)
{
	struct ib_mad_reg_req req = {
		.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
		.mgmt_class_version = IB_SA_CLASS_VERSION,
	};
	struct repath_sa_port *sp = kzalloc(sizeof(*sp), GFP_KERNEL);
	int err;

	if (!sp)
		return NULL;
	sp->dev = dev;
	sp->port = port;
	INIT_DELAYED_WORK(&sp->work, sa_work);
	spin_lock_init(&sp->lock);
	mutex_init(&sp->mutex);
	INIT_LIST_HEAD(&sp->reports);
	INIT_LIST_HEAD(&sp->asked);
	INIT_LIST_HEAD(&sp->answered);
	init_waitqueue_head(&sp->wait);
	repath_learnts_init(&sp->paths);
	sp->on = notices;
	sp->state = REPATH_SM_DOWN;
	sp->looked = jiffies - STRANGER_GAP;
	sp->told = jiffies - REPATH_SA_TELL_GAP;
	sp->table_at = jiffies;

	set_bit(IB_MGMT_METHOD_REPORT, req.method_mask);
	sp->agent = ib_register_mad_agent(dev->ibdev, port, IB_QPT_GSI, &req, IB_MGMT_RMPP_VERSION,
					  repath_sa_sent, received, sp, 0);
	if (IS_ERR(sp->agent)) {
		err = PTR_ERR(sp->agent);
		dev_warn(&dev->ibdev->dev,
			 "repath: port %u does not hear the subnet manager (%d): somebody else has its Reports?\n",
			 port, err);
		kfree(sp);
		return NULL;
	}
	return sp;
}

/**
 * repath_sa_begin - listen to the subnet manager
 * @dev: device, in ib_client add()
 *
 * What there is no memory for, or somebody else has, is not heard.
 */
void repath_sa_begin(struct repath_device *dev)
{
	struct repath_sa_port *sp;
	u32 port;

	mutex_lock(&dev->sa_mutex);
	rdma_for_each_port(dev->ibdev, port) {
		if (!rdma_cap_ib_sa(dev->ibdev, port))
			continue;
		sp = port_new(dev, port);
		if (sp)
			list_add_tail(&sp->node, &dev->sa_ports);
	}
	mutex_unlock(&dev->sa_mutex);
	INIT_IB_EVENT_HANDLER(&dev->sa_events, dev->ibdev, sa_event);
	ib_register_event_handler(&dev->sa_events);
	list_for_each_entry(sp, &dev->sa_ports, node)
		repath_sa_want(sp, REPATH_SA_LOOK);
}

static bool is_active(const struct repath_sa_port *sp)
{
	enum ib_port_state state;

	return !ib_get_cached_port_state(sp->dev->ibdev, sp->port, &state) &&
	       state == IB_PORT_ACTIVE;
}

static void leave(struct repath_sa_port *sp)
{
	unsigned long flags;

	/* From now on no callback queues the work. */
	spin_lock_irqsave(&sp->lock, flags);
	sp->ending = true;
	spin_unlock_irqrestore(&sp->lock, flags);
	cancel_delayed_work_sync(&sp->work);
	repath_sa_cancel(sp);
	mutex_lock(&sp->mutex);
	if (sp->way && sp->subscribed && is_active(sp))
		repath_sa_unsubscribe(sp);
	mutex_unlock(&sp->mutex);
}

/*
 * Who may still hold the port when this returns, and why that is safe:
 * (1) MAD callbacks: ib_unregister_mad_agent() waits for them, and ends all MADs;
 * (2) the work: cancelled, and not queued again since @ending is set;
 * (3) events: their handler is unregistered;
 * (4) readers: they hold sa_mutex, and find no port when they get it.
 */
static void port_free(struct repath_sa_port *sp)
{
	struct repath_sa_ask *ask, *next_ask;
	struct report *report, *next;

	ib_unregister_mad_agent(sp->agent);
	list_for_each_entry_safe(ask, next_ask, &sp->answered, node)
		repath_sa_ask_free(ask);
	list_for_each_entry_safe(report, next, &sp->reports, node)
		kfree(report);
	WARN_ON(!list_empty(&sp->asked));
	forget_way(sp);
	repath_learnts_clear(&sp->paths);
	mutex_destroy(&sp->mutex);
	kfree(sp);
}

/**
 * repath_sa_end - the device goes
 * @dev: device, in ib_client remove()
 *
 * The subnet managers are told, and have a moment to answer.
 */
void repath_sa_end(struct repath_device *dev)
{
	struct repath_sa_port *sp, *next;

	ib_unregister_event_handler(&dev->sa_events);
	mutex_lock(&dev->sa_mutex);
	list_for_each_entry(sp, &dev->sa_ports, node)
		leave(sp);
	list_for_each_entry_safe(sp, next, &dev->sa_ports, node) {
		wait_event_timeout(sp->wait, list_empty_careful(&sp->asked),
				   msecs_to_jiffies(REPATH_SA_LEAVE_MS));
		list_del(&sp->node);
		port_free(sp);
	}
	mutex_unlock(&dev->sa_mutex);
}

int repath_sa_init(void)
{
	sa_wq = alloc_workqueue("repath_sa", WQ_UNBOUND, 0);
	return sa_wq ? 0 : -ENOMEM;
}

void repath_sa_exit(void)
{
	destroy_workqueue(sa_wq);
}
