// SPDX-License-Identifier: GPL-2.0
#include "function.h"
#include "mad.h"

#define QPNS RVT_BITS_PER_PAGE		/* of a function: rdmavt's map has them in one page */

/* rdmavt frees the page with its table, and a QPN's bit when the queue pair is gone. */
static unsigned long *qpn_page(struct rvt_qpn_table *qpt, u32 first)
{
	struct rvt_qpn_map *map = &qpt->map[first / RVT_BITS_PER_PAGE];
	unsigned long page;

	if (map->page)
		return map->page;
	page = get_zeroed_page(GFP_KERNEL);
	spin_lock(&qpt->lock);
	if (map->page)
		free_page(page);
	else
		map->page = (void *)page;
	spin_unlock(&qpt->lock);
	return map->page;
}

/* Of QP0 and QP1, as rdmavt has it. */
static unsigned int special_bit(enum ib_qp_type type, u32 port_num)
{
	return 1 << ((type == IB_QPT_GSI) + 2 * (port_num - 1));
}

static int special_qpn(struct rvt_qpn_table *qpt, enum ib_qp_type type, u32 port_num)
{
	int qpn = type == IB_QPT_GSI;
	unsigned int taken = special_bit(type, port_num);

	spin_lock(&qpt->lock);
	if (qpt->flags & taken)
		qpn = -EINVAL;
	else
		qpt->flags |= taken;
	spin_unlock(&qpt->lock);
	return qpn;
}

int vhca_function_qpn(struct rvt_dev_info *rdi, struct rvt_qpn_table *qpt, enum ib_qp_type type,
		      u32 port_num)
{
	struct vhca_dev *dev = container_of(rdi, struct vhca_dev, rdi);
	u32 first = dev->function << VHCA_FUNCTION_QPN_BITS, i, at;
	unsigned long *page;

	if (type == IB_QPT_SMI || type == IB_QPT_GSI)
		return special_qpn(qpt, type, port_num);
	page = qpn_page(qpt, first);
	if (!page)
		return -ENOMEM;
	/* From the last on, so that a number is not soon given out again; 0 and 1 are special. */
	for (i = 0, at = qpt->last; i < QPNS; i++) {
		at = (at + 1) % QPNS;
		if (at < 2 || test_and_set_bit(at, page))
			continue;
		qpt->last = at;
		return first | at;
	}
	return -ENOMEM;
}

void vhca_function_free_special(struct rvt_dev_info *rdi, struct rvt_qp *qp)
{
	struct rvt_qpn_table *qpt = &rdi->qp_dev->qpn_table;

	/* rvt_create_qp() sets the port when it has the number. */
	if (!qp->port_num || qp->ibqp.qp_type > IB_QPT_GSI)
		return;
	spin_lock(&qpt->lock);
	qpt->flags &= ~special_bit(qp->ibqp.qp_type, qp->port_num);
	spin_unlock(&qpt->lock);
}

void vhca_function_news(struct vhca_port *port, struct vhca_port_news *news)
{
	const struct ib_smp nobody = {};
	unsigned int i;

	BUILD_BUG_ON(ARRAY_SIZE(news->pkeys) != VHCA_PKEYS);
	memset(news, 0, sizeof(*news));
	vhca_port_info_get(port, &nobody, news->info);
	memcpy(news->sl2vl, port->sl2vl, sizeof(news->sl2vl));
	for (i = 0; i < VHCA_PKEYS; i++)
		news->pkeys[i] = cpu_to_be16(port->pkeys[i]);
	for (i = 0; i < VHCA_MAX_FUNCTIONS; i++)
		news->guids[i] = READ_ONCE(port->guids[i]);
	news->reregistered = cpu_to_be32(port->reregistered);
}

void vhca_function_follow(struct vhca_port *port, const struct vhca_port_news *news)
{
	__be64 guid = news->guids[port->dev->function];
	u32 reregistered = be32_to_cpu(news->reregistered);
	bool pkeys = false;
	unsigned int i;

	memcpy(port->sl2vl, news->sl2vl, sizeof(port->sl2vl));
	for (i = 0; i < VHCA_PKEYS; i++) {
		u16 key = be16_to_cpu(news->pkeys[i]);

		pkeys |= key != port->pkeys[i];
		WRITE_ONCE(port->pkeys[i], key);
	}
	if (pkeys)
		vhca_dev_event(port, IB_EVENT_PKEY_CHANGE);
	if (guid != port->guids[0]) {
		WRITE_ONCE(port->guids[0], guid);
		vhca_dev_event(port, IB_EVENT_GID_CHANGE);
	}
	/* Without a GUID it is nobody yet. */
	vhca_port_info_follow(port, news->info, guid != 0);
	if (port->reregistered != reregistered) {
		port->reregistered = reregistered;
		vhca_dev_event(port, IB_EVENT_CLIENT_REREGISTER);
	}
}
