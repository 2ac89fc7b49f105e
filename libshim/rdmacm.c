// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Does this process have IDs of rdma_cm on a device? They are the kernel's and end with the device.
 * Only that of the kernel is the truth: librdmacm keeps devices open that no ID uses, and a program
 * (UCX) may have an event channel and never an ID.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <rdma/rdma_netlink.h>

#include "move.h"

/* Without its device file nobody has IDs. */
static bool has_event_channel(void)
{
	char link[64], target[64];
	struct dirent *e;
	DIR *d = opendir("/proc/self/fd");
	bool found = false;

	while (d && !found && (e = readdir(d))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%.20s", e->d_name);
		n = readlink(link, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		found = !strcmp(target, "/dev/infiniband/rdma_cm");
	}
	if (d)
		closedir(d);
	return found;
}

/* The kernel notes the thread that made an ID; of one that has ended it notes nobody. */
static bool may_be_ours(const struct nlattr *pid)
{
	char path[64];

	if (!pid)
		return true;
	if (nla_len(pid) < 4)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%u", nla_get_u32(pid));
	return !access(path, F_OK);
}

static unsigned int count_entries(struct nlmsghdr *h)
{
	struct nlattr *table = nlmsg_find_attr(h, 0, RDMA_NLDEV_ATTR_RES_CM_ID), *entry;
	unsigned int n = 0;
	int left;

	if (!table)
		return 0;
	nla_for_each_nested(entry, table, left) {
		struct nlattr *kernel = nla_find(nla_data(entry), nla_len(entry),
						 RDMA_NLDEV_ATTR_RES_KERN_NAME);

		if (!kernel && may_be_ours(nla_find(nla_data(entry), nla_len(entry),
						    RDMA_NLDEV_ATTR_RES_PID)))
			n++;
	}
	return n;
}

/* Takes the answers of the dump from @fd; IDs, or -errno. */
static int collect(int fd)
{
	static char buf[32768];		/* of the control thread alone */
	int n = 0;

	for (;;) {
		struct nlmsghdr *h = (struct nlmsghdr *)buf;
		int len = recv(fd, buf, sizeof(buf), 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len <= 0)
			return len ? -errno : -EIO;
		for (; nlmsg_ok(h, len); h = nlmsg_next(h, &len)) {
			if (h->nlmsg_type == NLMSG_DONE)
				return n;
			if (h->nlmsg_type == NLMSG_ERROR)
				return nlmsg_datalen(h) >= (int)sizeof(int) ?
				       *(int *)nlmsg_data(h) : -EIO;
			n += count_entries(h);
		}
	}
}

int rp_rdmacm_ids(uint32_t dev_index)
{
	struct {
		struct nlmsghdr h;
		struct nlattr a;
		uint32_t index;
	} request = {
		.h = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
						       RDMA_NLDEV_CMD_RES_CM_ID_GET),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = 1,
		},
		.a = { sizeof(request.a) + sizeof(request.index), RDMA_NLDEV_ATTR_DEV_INDEX },
		.index = dev_index,
	};
	struct timeval timeout = { .tv_sec = 2 };
	int fd, n;

	if (!has_event_channel())
		return 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	n = send(fd, &request, sizeof(request), 0) < 0 ? -errno : collect(fd);
	close(fd);
	return n;
}
