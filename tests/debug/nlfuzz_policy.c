// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asks the kernel for the family's commands, and for the policy of each (CTRL_CMD_GETPOLICY). */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nlfuzz.h"

#define ATTR_DATA(a)	((void *)((char *)(a) + NLA_HDRLEN))
#define ATTR_LEN(a)	((int)(a)->nla_len - NLA_HDRLEN)
#define ATTR_TYPE(a)	((a)->nla_type & NLA_TYPE_MASK)
#define for_each_attr(a, data, len)							\
	for (struct nlattr *a = (data), *end_##a = (void *)((char *)(data) + (len));	\
	     (char *)a + NLA_HDRLEN <= (char *)end_##a && a->nla_len >= NLA_HDRLEN;	\
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len)))

static uint32_t u32_of(const struct nlattr *a)
{
	uint32_t value;

	memcpy(&value, ATTR_DATA(a), sizeof(value));
	return value;
}

static uint64_t u64_of(const struct nlattr *a)
{
	uint64_t value;

	memcpy(&value, ATTR_DATA(a), sizeof(value));
	return value;
}

int open_socket(void)
{
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_GENERIC);
	int on = 1;

	if (fd < 0 || bind(fd, (struct sockaddr *)&nl, sizeof(nl)))
		err(1, "netlink");
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	return fd;
}

static int ask(int fd, uint8_t cmd, uint16_t flags)
{
	struct {
		struct nlmsghdr nlh;
		struct genlmsghdr genl;
		struct nlattr attr;
		char name[8];
	} rq = {
		.nlh = { .nlmsg_len = sizeof(rq), .nlmsg_type = GENL_ID_CTRL,
			 .nlmsg_flags = NLM_F_REQUEST | flags, .nlmsg_seq = 1 },
		.genl = { .cmd = cmd, .version = 2 },
		.attr = { .nla_len = NLA_HDRLEN + sizeof(REPATH_GENL_NAME),
			  .nla_type = CTRL_ATTR_FAMILY_NAME },
		.name = REPATH_GENL_NAME,
	};

	return send(fd, &rq, sizeof(rq), 0) == sizeof(rq) ? 0 : -1;
}

static void take_op(struct nlattr *op)
{
	unsigned int n = family.nops;

	if (n >= OPS_MAX)
		errx(1, "more than %d commands", OPS_MAX);
	for_each_attr(a, ATTR_DATA(op), ATTR_LEN(op)) {
		if (ATTR_TYPE(a) == CTRL_ATTR_OP_ID)
			family.ops[n] = u32_of(a);
		else if (ATTR_TYPE(a) == CTRL_ATTR_OP_FLAGS)
			family.flags[n] = u32_of(a);
	}
	family.nops++;
}

static void take_family(void *data, int len)
{
	for_each_attr(a, data, len) {
		if (ATTR_TYPE(a) == CTRL_ATTR_FAMILY_ID)
			memcpy(&family.id, ATTR_DATA(a), sizeof(family.id));
		else if (ATTR_TYPE(a) == CTRL_ATTR_OPS)
			for_each_attr(op, ATTR_DATA(a), ATTR_LEN(a))
				take_op(op);
		else if (ATTR_TYPE(a) == CTRL_ATTR_MCAST_GROUPS)
			for_each_attr(group, ATTR_DATA(a), ATTR_LEN(a))
				for_each_attr(item, ATTR_DATA(group), ATTR_LEN(group))
					if (ATTR_TYPE(item) == CTRL_ATTR_MCAST_GRP_ID &&
					    !family.group)
						family.group = u32_of(item);
	}
}

/* Which policy number each command has; the policies themselves come after all of these. */
static int policy_of[OPS_MAX];

static void take_policy_attr(unsigned int index, unsigned int attr, struct nlattr *nest)
{
	struct attr_policy policy = { .max = UINT64_MAX };

	for_each_attr(a, ATTR_DATA(nest), ATTR_LEN(nest))
		switch (ATTR_TYPE(a)) {
		case NL_POLICY_TYPE_ATTR_TYPE:
			policy.type = u32_of(a);
			break;
		case NL_POLICY_TYPE_ATTR_MIN_VALUE_U:
			policy.min = u64_of(a);
			break;
		case NL_POLICY_TYPE_ATTR_MAX_VALUE_U:
			policy.max = u64_of(a);
			break;
		case NL_POLICY_TYPE_ATTR_MIN_LENGTH:
			policy.min = u32_of(a);
			break;
		case NL_POLICY_TYPE_ATTR_MAX_LENGTH:
			policy.max = u32_of(a);
			break;
		}
	for (unsigned int op = 0; op < family.nops; op++)
		if (policy_of[op] == (int)index && attr < ATTRS_MAX)
			family.policy[op][attr] = policy;
}

static void take_op_policy(unsigned int cmd, unsigned int index)
{
	for (unsigned int i = 0; i < family.nops; i++)
		if (family.ops[i] == cmd)
			policy_of[i] = index;
}

static void take_policy(void *data, int len)
{
	for_each_attr(a, data, len) {
		if (ATTR_TYPE(a) == CTRL_ATTR_OP_POLICY)
			for_each_attr(op, ATTR_DATA(a), ATTR_LEN(a))
				for_each_attr(which, ATTR_DATA(op), ATTR_LEN(op))
					take_op_policy(ATTR_TYPE(op), u32_of(which));
		if (ATTR_TYPE(a) == CTRL_ATTR_POLICY)
			for_each_attr(index, ATTR_DATA(a), ATTR_LEN(a))
				for_each_attr(attr, ATTR_DATA(index), ATTR_LEN(index))
					take_policy_attr(ATTR_TYPE(index), ATTR_TYPE(attr), attr);
	}
}

/* Hands the attributes of each answer to @take, until the kernel has no more. */
static void answers(int fd, void (*take)(void *data, int len), bool dump)
{
	_Alignas(8) static char buffer[65536];
	ssize_t left;

	for (;;) {
		left = recv(fd, buffer, sizeof(buffer), 0);
		if (left < 0 && errno == EAGAIN)
			return;
		if (left < 0)
			err(1, "netlink");
		for (struct nlmsghdr *h = (void *)buffer; NLMSG_OK(h, left);
		     h = NLMSG_NEXT(h, left)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return;
			if (h->nlmsg_type == NLMSG_ERROR)
				errx(1, "there is no family \"" REPATH_GENL_NAME "\", or it does not "
				     "tell its policies");
			take((char *)NLMSG_DATA(h) + GENL_HDRLEN,
			     h->nlmsg_len - NLMSG_HDRLEN - GENL_HDRLEN);
		}
		if (!dump)
			return;
	}
}

void read_family(void)
{
	int fd = open_socket();

	if (ask(fd, CTRL_CMD_GETFAMILY, 0))
		err(1, "netlink");
	answers(fd, take_family, false);
	memset(policy_of, -1, sizeof(policy_of));
	if (ask(fd, CTRL_CMD_GETPOLICY, NLM_F_DUMP))
		err(1, "netlink");
	answers(fd, take_policy, true);
	close(fd);
	if (!family.id || !family.nops || !family.group)
		errx(1, "the kernel does not describe the family");
}
