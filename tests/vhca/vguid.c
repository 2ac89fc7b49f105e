// SPDX-License-Identifier: GPL-2.0
/*
 * The GUIDs of a PF's VFs are alias GUIDs of its port. The SM has to know them: it is asked to set the
 * GUIDInfo record (IBA 1.2.1 vol 1, 15.2.5.18), with the GUIDs that were given with the PF, and with 0
 * where the SM is to choose. It then sets the port's GUIDInfo, as it would on its own.
 */
#include <rdma/ib_sa.h>

#include "function.h"

#define ANSWER_MS 1000
#define RETRY_MS 100
#define GUID_MASK(i) IB_SA_COMP_MASK(4 + (i))	/* IB_SA_GUIDINFO_REC_GID0 .. */

static struct ib_sa_client sa_client;

static void answered(int status, struct ib_sa_guidinfo_rec *rec, void *context)
{
	struct vhca_port *port = context;

	WRITE_ONCE(port->vguids_known, !status);
}

/* Which GUIDs are to be removed, or else to be set, and to what. */
static ib_sa_comp_mask entries(const struct vhca_port *port, struct ib_sa_guidinfo_rec *rec,
			       bool remove)
{
	const struct vhca_dev *dev = port->dev;
	ib_sa_comp_mask mask = 0;
	unsigned int i;

	for (i = 1; i <= dev->vfs; i++) {
		u64 wanted = READ_ONCE(dev->vguid[i]), has = be64_to_cpu(port->guids[i]);

		if (remove != (wanted == VHCA_NO_VGUID) || (remove && !has))
			continue;
		mask |= GUID_MASK(i);
		/* What the SM chose once, it may choose again. */
		put_unaligned_be64(remove ? has : wanted ?: has, rec->guid_info_list + 8 * i);
	}
	return mask;
}

/* Again and again, until the SM has answered, and until its own SMPs have removed what is to go. */
static void ask(struct work_struct *work)
{
	struct vhca_port *port = container_of(work, struct vhca_port, vguid_work.work);
	struct vhca_dev *dev = port->dev;
	struct ib_sa_guidinfo_rec rec = { .lid = cpu_to_be16(port->lid) };
	ib_sa_comp_mask mask = entries(port, &rec, true);
	bool remove = mask;
	unsigned int wait = RETRY_MS;

	if (READ_ONCE(port->vguids_stopped) || READ_ONCE(port->vguids_known) ||
	    port->state != IB_PORT_ACTIVE)
		return;
	if (!remove)
		mask = entries(port, &rec, false);
	if (!mask)
		return;
	mask |= IB_SA_GUIDINFO_REC_LID | IB_SA_GUIDINFO_REC_BLOCK_NUM;
	/* The core may not know yet where the SM is. */
	if (ib_sa_guid_info_rec_query(&sa_client, &dev->rdi.ibdev, port->num, &rec, mask,
				      remove ? IB_SA_METHOD_DELETE : IB_MGMT_METHOD_SET,
				      ANSWER_MS, GFP_KERNEL, remove ? NULL : answered, port,
				      &port->vguid_query) >= 0 && !remove)
		wait += ANSWER_MS;
	queue_delayed_work(dev->wq, &port->vguid_work, msecs_to_jiffies(wait));
}

void vhca_vguids_tell(struct vhca_port *port)
{
	if (!port->dev->vfs || READ_ONCE(port->vguids_stopped))
		return;
	WRITE_ONCE(port->vguids_known, false);
	mod_delayed_work(port->dev->wq, &port->vguid_work, 0);
}

void vhca_vguids_start(struct vhca_port *port)
{
	INIT_DELAYED_WORK(&port->vguid_work, ask);
	port->vguids_stopped = false;
}

/* The core's client for SA queries ends a query that is under way when the device goes. */
void vhca_vguids_stop(struct vhca_port *port)
{
	WRITE_ONCE(port->vguids_stopped, true);
	cancel_delayed_work_sync(&port->vguid_work);
}

void vhca_vguids_init(void)
{
	ib_sa_register_client(&sa_client);
}

/* Waits for callbacks. */
void vhca_vguids_exit(void)
{
	ib_sa_unregister_client(&sa_client);
}

void vhca_vguids_again(struct vhca_port *port)
{
	WRITE_ONCE(port->vguids_stopped, false);
	vhca_vguids_tell(port);
}
