// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libstopper.so: ends or stops a process at an exact point of a move, for tests. Preloaded before
 * libibrepath.so, it sees each word that the shim is about to say to the module:
 *
 *	$STOPPER is a file; while it has the line
 *		kill|stop|exit before|after reply|msg NUMBERS
 *	the process gets SIGKILL, SIGSTOP, or SIGQUIT, at which rcheck destroys what it has and
 *	exits, before, or after, it says REPLY with this stage (enum
 *	repath_stage), or PEER_SEND with this type (enum repath_msg): the first one of NUMBERS, a bit
 *	mask in hexadecimal. The file is removed first.
 *	$STOPPER_ABI: the version of the interface that the shim says it has.
 *	$STOPPER_JOIN: who joins a multicast group, the command repath as well, goes on so many
 *	milliseconds later.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>

#include "../../include/uapi/ib_repath.h"

struct point {
	int sig;
	int after;
	int cmd;
	int attr;
	unsigned int numbers;	/* 1 << number of each */
};

static int wanted(struct point *p)
{
	const char *path = getenv("STOPPER");
	char what[8], when[8], of[8];
	FILE *f = path ? fopen(path, "re") : NULL;
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "%7s %7s %7s %x", what, when, of, &p->numbers);
	fclose(f);
	if (n != 4)
		return 0;
	p->sig = !strcmp(what, "kill") ? SIGKILL : !strcmp(what, "exit") ? SIGQUIT : SIGSTOP;
	p->after = !strcmp(when, "after");
	p->cmd = strcmp(of, "msg") ? REPATH_CMD_REPLY : REPATH_CMD_PEER_SEND;
	p->attr = strcmp(of, "msg") ? REPATH_A_OP_STAGE : REPATH_A_MSG_TYPE;
	return 1;
}

static int is_there(const struct point *p, struct nl_msg *msg)
{
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct genlmsghdr *g = nlmsg_data(nlh);
	struct nlattr *a;

	if (nlh->nlmsg_type < GENL_MIN_ID || nlh->nlmsg_len < NLMSG_HDRLEN + GENL_HDRLEN ||
	    g->cmd != p->cmd)
		return 0;
	a = nla_find((struct nlattr *)((char *)g + GENL_HDRLEN),
		     nlh->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, p->attr);
	return a && nla_get_u8(a) < 32 && p->numbers & 1u << nla_get_u8(a);
}

/* Another release of the shim, as far as the module can see. */
static void say_other_abi(struct nl_msg *msg)
{
	const char *abi = getenv("STOPPER_ABI");
	struct nlmsghdr *nlh = nlmsg_hdr(msg);
	struct genlmsghdr *g = nlmsg_data(nlh);
	struct nlattr *a;

	if (!abi || nlh->nlmsg_type < GENL_MIN_ID || g->cmd != REPATH_CMD_REGISTER)
		return;
	a = nla_find((struct nlattr *)((char *)g + GENL_HDRLEN),
		     nlh->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN, REPATH_A_ABI_VERSION);
	if (a)
		*(uint32_t *)nla_data(a) = atoi(abi);
}

static void end_here(const struct point *p)
{
	unlink(getenv("STOPPER"));
	if (p->sig == SIGQUIT)	/* whoever waits for completions has to leave, this thread goes on */
		kill(getpid(), p->sig);
	else	/* for this very thread: another one could stop a little later */
		raise(p->sig);
}

int nl_send_auto(struct nl_sock *sk, struct nl_msg *msg)
{
	static int (*real)(struct nl_sock *sk, struct nl_msg *msg);
	struct point p = { 0 };
	int here, ret;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "nl_send_auto");
	say_other_abi(msg);
	here = wanted(&p) && is_there(&p, msg);
	if (here && !p.after)
		end_here(&p);
	ret = real(sk, msg);
	if (here && p.after)
		end_here(&p);
	return ret;
}

int nl_socket_add_membership(struct nl_sock *sk, int group)
{
	static int (*real)(struct nl_sock *sk, int group);
	const char *ms = getenv("STOPPER_JOIN");
	int ret;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "nl_socket_add_membership");
	ret = real(sk, group);
	if (ms)
		usleep(atoi(ms) * 1000);
	return ret;
}
