// SPDX-License-Identifier: GPL-2.0
/* ib_repath: keeps RDMA connections alive while the network under them changes. */
#include <linux/module.h>

#include "client.h"
#include "conn.h"
#include "gone.h"
#include "hello.h"
#include "hooks.h"
#include "known.h"
#include "netlink.h"
#include "note.h"
#include "number.h"
#include "op.h"
#include "peer.h"
#include "proc.h"
#include "resolve.h"
#include "sa.h"
#include "sleep.h"
#include "track.h"
#include "unplug.h"
#include "watch.h"
#include "xprt.h"

static int __init repath_init(void)
{
	int err;

	/* There locks and kmalloc() sleep, which probe handlers must not. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("repath: kernels with PREEMPT_RT are not supported: probe handlers can not allocate\n");
		return -EOPNOTSUPP;
	}
	err = repath_track_init();
	if (err)
		return err;
	err = repath_note_init();
	if (err)
		goto err_track;
	err = repath_proc_init();
	if (err)
		goto err_note;
	err = repath_conn_init();
	if (err)
		goto err_proc;
	err = repath_op_init();
	if (err)
		goto err_conn;
	err = repath_xprt_init();
	if (err)
		goto err_op;
	err = repath_hello_init();
	if (err)
		goto err_xprt;
	err = repath_peer_init();
	if (err)
		goto err_hello;
	repath_number_init();
	err = repath_resolve_init();
	if (err)
		goto err_peer;
	err = repath_watch_init();
	if (err)
		goto err_resolve;
	err = repath_hooks_init();
	if (err)
		goto err_watch;
	err = repath_unplug_init();
	if (err)
		goto err_hooks;
	err = repath_sa_init();
	if (err)
		goto err_unplug;
	err = repath_sleep_init();
	if (err)
		goto err_sa;
	err = repath_client_init();
	if (err)
		goto err_sleep;
	/* Who sees the family registers, and says at once what is on its devices: all of them are known. */
	err = repath_nl_init();
	if (err)
		goto err_client;
	return 0;

err_client:
	repath_client_exit();
err_sleep:
	repath_sleep_exit();
err_sa:
	repath_sa_exit();
err_unplug:
	repath_unplug_exit();
err_hooks:
	repath_hooks_exit();
	repath_note_flush();
err_watch:
	repath_watch_exit();
err_resolve:
	repath_resolve_exit();
	repath_number_exit();
	repath_known_exit();
err_peer:
	repath_peer_exit();
	repath_gone_exit();
err_hello:
	repath_hello_exit();
err_xprt:
	repath_xprt_exit();
err_op:
	repath_op_exit();
err_conn:
	repath_conn_exit();
err_proc:
	repath_proc_exit();
err_note:
	repath_note_exit();
err_track:
	repath_track_exit();
	/* What kfree_rcu() frees later is no function of this module. */
	return err;
}

static void __exit repath_exit(void)
{
	/* No device, so no queue pair: what there was is in notes, which are told before the rest goes. */
	repath_client_exit();
	repath_sleep_exit();
	repath_sa_exit();
	repath_unplug_exit();
	repath_hooks_exit();
	repath_note_flush();
	repath_nl_exit();
	/* What is delivered here until then may say that somebody has moved, which is remembered by the others. */
	repath_peer_exit();
	repath_watch_exit();
	repath_resolve_exit();
	repath_number_exit();
	repath_known_exit();
	repath_gone_exit();
	repath_hello_exit();
	repath_xprt_exit();
	repath_op_exit();
	repath_conn_exit();
	repath_proc_exit();
	repath_note_exit();
	repath_track_exit();
}

module_init(repath_init);
module_exit(repath_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Keeps RDMA connections alive while the network under them changes");
MODULE_VERSION("0.1");
