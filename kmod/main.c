// SPDX-License-Identifier: GPL-2.0
/* ib_repath: keeps RDMA connections alive while the network under them changes. */
#include <linux/module.h>

#include "client.h"
#include "conn.h"
#include "hello.h"
#include "hooks.h"
#include "netlink.h"
#include "note.h"
#include "op.h"
#include "peer.h"
#include "proc.h"
#include "xprt.h"

static int __init repath_init(void)
{
	int err;

	err = repath_note_init();
	if (err)
		return err;
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
	err = repath_nl_init();
	if (err)
		goto err_peer;
	err = repath_hooks_init();
	if (err)
		goto err_nl;
	err = repath_client_init();
	if (err)
		goto err_hooks;
	return 0;

err_hooks:
	repath_hooks_exit();
err_nl:
	repath_note_flush();
	repath_nl_exit();
err_peer:
	repath_peer_exit();
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
	/* Objects are freed by kfree_rcu(), of which nothing in this module's text is left. */
	return err;
}

static void __exit repath_exit(void)
{
	/* No device, so no queue pair: what there was is in notes, which are told before the rest goes. */
	repath_client_exit();
	repath_hooks_exit();
	repath_note_flush();
	repath_nl_exit();
	repath_peer_exit();
	repath_hello_exit();
	repath_xprt_exit();
	repath_op_exit();
	repath_conn_exit();
	repath_proc_exit();
	repath_note_exit();
}

module_init(repath_init);
module_exit(repath_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Keeps RDMA connections alive while the network under them changes");
MODULE_VERSION("0.1");
