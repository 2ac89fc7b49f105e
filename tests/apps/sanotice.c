// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * sanotice -C DEV -L LID [-n TIMES] [-t MS] [-r RETRIES] [WORD=VALUE...]
 *
 * Sends SubnAdmReport(Notice) to a LID, as a subnet manager would, or somebody who is none, and
 * says for each whether it was answered. Words: trap, type, producer, kind, flags, version, epoch,
 * serial, number, and of the path slid, dlid, dgid, sl, mtu, rate, pkey: these are in the component
 * mask, unless the word mask comes before them.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <infiniband/umad.h>
#include <repath_sm.h>

#define SA_CLASS	3
#define SA_VERSION	2
#define REPORT		6
#define REPORT_RESP	0x86
#define NOTICE		2
#define SA_DATA		56
#define QP1_QKEY	0x80010000
#define MAD		256

struct mad {
	uint8_t base_version, class, class_version, method;
	uint16_t status, class_specific;
	uint64_t tid;
	uint16_t attr, reserved;
	uint32_t modifier;
	uint8_t rest[SA_DATA - 24];
	struct repath_sm_report report;
} __attribute__((packed));

static struct mad mad = {
	.base_version = 1,
	.class = SA_CLASS,
	.class_version = SA_VERSION,
	.method = REPORT,
};

static void die(const char *what)
{
	fprintf(stderr, "sanotice: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t mask;
static bool own_mask;

static void has(uint64_t component)
{
	if (!own_mask)
		mask |= component;
}

static int path_word(const char *word, const char *text, unsigned long value)
{
	struct repath_sm_path *path = &mad.report.path;

	if (!strcmp(word, "slid")) {
		path->slid = htons(value);
		has(REPATH_SM_MASK_SLID);
	} else if (!strcmp(word, "dlid")) {
		path->dlid = htons(value);
		has(REPATH_SM_MASK_DLID);
	} else if (!strcmp(word, "sl")) {
		path->qos_class_sl = htons(value);
		has(REPATH_SM_MASK_SL);
	} else if (!strcmp(word, "mtu")) {
		path->mtu = REPATH_SM_EXACTLY | value;
		has(REPATH_SM_MASK_MTU);
	} else if (!strcmp(word, "rate")) {
		path->rate = REPATH_SM_EXACTLY | value;
		has(REPATH_SM_MASK_RATE);
	} else if (!strcmp(word, "pkey")) {
		path->pkey = htons(value);
		has(REPATH_SM_MASK_PKEY);
	} else if (!strcmp(word, "dgid")) {
		if (inet_pton(AF_INET6, text, path->dgid) != 1)
			return -1;
		has(REPATH_SM_MASK_DGID);
	} else {
		return -1;
	}
	return 0;
}

static int word(char *text)
{
	struct repath_sm_details *details = &mad.report.details;
	char *value = strchr(text, '=');
	unsigned long number;

	if (!value)
		return -1;
	*value++ = 0;
	number = strtoul(value, NULL, 0);
	if (!strcmp(text, "trap")) {
		mad.report.trap = htons(number);
	} else if (!strcmp(text, "type")) {
		mad.report.type = number;
	} else if (!strcmp(text, "producer")) {
		mad.report.producer[2] = number;
	} else if (!strcmp(text, "kind")) {
		details->flags = (details->flags & ~REPATH_SM_KIND) | number;
	} else if (!strcmp(text, "flags")) {
		details->flags = (details->flags & REPATH_SM_KIND) | number;
	} else if (!strcmp(text, "version")) {
		details->version = number;
	} else if (!strcmp(text, "epoch")) {
		details->sm_epoch = htonl(number);
	} else if (!strcmp(text, "serial")) {
		details->serial = htonl(number);
	} else if (!strcmp(text, "number")) {
		details->number = htonl(number);
	} else if (!strcmp(text, "mask")) {
		mask = number;
		own_mask = true;
	} else {
		return path_word(text, value, number);
	}
	return 0;
}

/* 0: answered; 1: not in time. */
static int send_one(int port, int agent, int lid, int timeout, int retries, unsigned int tid)
{
	void *umad = umad_alloc(1, umad_size() + MAD);
	int length = MAD, status;

	if (!umad)
		die("memory");
	mad.tid = htobe64(tid);
	memcpy(umad_get_mad(umad), &mad, sizeof(mad));
	umad_set_addr(umad, lid, 1, 0, QP1_QKEY);
	if (umad_send(port, agent, umad, MAD, timeout, retries) < 0)
		die("send");
	if (umad_recv(port, umad, &length, -1) < 0)
		die("receive");
	status = umad_status(umad);
	if (!status && ((struct mad *)umad_get_mad(umad))->method != REPORT_RESP)
		status = EPROTO;
	printf("%s\n", status ? status == ETIMEDOUT ? "no answer" : strerror(status) : "answered");
	umad_free(umad);
	return !!status;
}

int main(int argc, char **argv)
{
	int lid = 0, times = 1, timeout = 1000, retries = 0, port, agent, option, missed = 0;
	const char *dev = NULL;

	mad.attr = htons(NOTICE);
	mad.report.type = REPATH_SM_TYPE;
	mad.report.producer[2] = REPATH_SM_PRODUCER;
	mad.report.trap = htons(REPATH_SM_REPATH);
	mad.report.details.version = REPATH_SM_VERSION;
	while ((option = getopt(argc, argv, "C:L:n:t:r:")) != -1) {
		switch (option) {
		case 'C':
			dev = optarg;
			break;
		case 'L':
			lid = atoi(optarg);
			break;
		case 'n':
			times = atoi(optarg);
			break;
		case 't':
			timeout = atoi(optarg);
			break;
		case 'r':
			retries = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	for (; optind < argc; optind++) {
		if (word(argv[optind])) {
			fprintf(stderr, "sanotice: \"%s\" is not known\n", argv[optind]);
			return 2;
		}
	}
	mad.report.details.comp_mask = htobe64(mask);

	if (umad_init() < 0)
		die("umad_init");
	port = umad_open_port(dev, 1);
	if (port < 0)
		die(dev ? dev : "port");
	agent = umad_register(port, SA_CLASS, SA_VERSION, 0, NULL);
	if (agent < 0)
		die("agent");
	for (int i = 0; i < times; i++)
		missed |= send_one(port, agent, lid, timeout, retries, getpid() << 8 | (i & 0xff));
	umad_close_port(port);
	return missed;
}
