// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* repath relay and one guest, which is the other end of a socket here and says what it likes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "check.h"
#include "../../tools/relay_guest.h"

static struct relay_guest guest;
static char path[] = "/tmp/test_relay.XXXXXX/socket";
static int listener, peer = -1;
static uint64_t now = 1;
static char said[2 * RELAY_LINE];		/* the first letter of each event */

static void say(struct relay_guest *g, const char *event, const char *text)
{
	(void)g;
	(void)text;
	strncat(said, event, 1);
}

/* Until nothing more happens by itself. */
static void serve(void)
{
	for (int i = 0; i < 20; i++) {
		struct pollfd fd;

		relay_guest_poll(&guest, now, &fd);
		fd.revents = 0;
		if (fd.fd >= 0)
			poll(&fd, 1, 0);
		relay_guest_serve(&guest, now, fd.revents);
	}
}

/* What the guest is asked now; "" if nothing. */
static const char *asked(void)
{
	static char text[RELAY_LINE];
	ssize_t n;

	serve();
	if (peer < 0)
		peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	n = peer < 0 ? 0 : read(peer, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static void answer(const char *text)
{
	CHECK(write(peer, text, strlen(text)) == (ssize_t)strlen(text));
	serve();
}

static void answer_it(const char *rest)
{
	char text[160];

	snprintf(text, sizeof(text), "{\"id\":%u,%s}\n", guest.id, rest);
	answer(text);
}

static void hang_up(void)
{
	close(peer);
	peer = -1;
	serve();
}

/* The time that it waits is over. */
static void be_due(void)
{
	now = guest.until;
	serve();
}

static void notice(uint8_t first)
{
	uint8_t data[REPATH_NOTICE_SIZE] = { first, [REPATH_NOTICE_SIZE - 1] = 0xfe };

	relay_guest_notice(&guest, data);
}

static void start(void)
{
	relay_guest_close(&guest);
	if (peer >= 0)
		close(peer);
	peer = -1;
	said[0] = 0;
	relay_guest_init(&guest, path, "vf0", 1, say);
	CHECK(!strcmp(asked(), "\n{\"id\":1,\"cmd\":\"relay\",\"dev\":\"vf0\",\"port\":1}\n"));
	answer_it("\"ok\":true");
	CHECK(!strcmp(said, "b"));
}

/* It begins, then each notice is told once, in order, and one at a time. */
static void t_tells(void)
{
	const char *text;

	start();
	CHECK(!*asked());
	notice(0x12);
	notice(0x34);
	text = asked();
	CHECK(strstr(text, "\"notice\":\"1200"));
	CHECK(strstr(text, "00fe\"}\n"));
	CHECK(!*asked());
	answer_it("\"ok\":true");
	CHECK(strstr(asked(), "\"notice\":\"3400"));
	answer_it("\"ok\":true");
	CHECK(!*asked());
	CHECK(guest.told == 2 && guest.begun == 1 && !guest.refused);
	/* Others have to talk to the agent, too. */
	be_due();
	CHECK(guest.fd < 0);
	hang_up();
	notice(0x56);
	CHECK(strstr(asked(), "\"notice\":\"5600"));
}

/* What is missed is made good by beginning anew, and what is told meanwhile is not told twice. */
static void t_begins_anew(void)
{
	start();
	notice(1);
	asked();
	answer_it("\"ok\":false,\"code\":\"ENOTCONN\"");
	CHECK(!strstr(asked(), "notice"));
	/* Between the question for everything and its answer: told after it. */
	notice(2);
	relay_guest_begin(&guest);
	notice(3);
	answer_it("\"ok\":true");
	CHECK(!strstr(asked(), "notice"));
	answer_it("\"ok\":true");
	CHECK(!*asked());
	CHECK(guest.begun == 3);
	for (int i = 0; i <= RELAY_QUEUE; i++)
		notice(i);
	CHECK(!strstr(asked(), "notice"));
	answer_it("\"ok\":true");
	CHECK(!*asked() && guest.begun == 4);
}

/* No answer, a refusal, a guest that goes: later again, from the beginning. */
static void t_fails(void)
{
	const char *refusals[] = { "\"ok\":false,\"error\":\"no RDMA device\"", NULL, "gone" };

	for (int i = 0; i < 3; i++) {
		start();
		notice(1);
		CHECK(strstr(asked(), "notice"));
		if (!refusals[i])
			be_due();
		else if (i)
			hang_up();
		else
			answer_it(refusals[i]);
		CHECK(!strcmp(said, "bf"));
		CHECK(guest.fd < 0);
		if (peer >= 0)
			hang_up();
		/* Nothing before its time, whatever there is to tell. */
		notice(2);
		CHECK(!*asked() && peer < 0);
		be_due();
		CHECK(!strstr(asked(), "notice") && peer >= 0);
		answer_it("\"ok\":true");
		CHECK(!strcmp(said, "bfb"));
	}
}

/* A guest says things unasked, notices among them: counted, and nothing comes of it. */
static void t_nothing_upward(void)
{
	static const char *const lines[] = {
		"{\"id\":1,\"cmd\":\"relay\",\"dev\":\"vhca1\",\"port\":1,\"notice\":\"8300\"}\n",
		"{\"id\":2,\"ok\":true}\n",		/* to what is not asked yet */
		"{\"event\":\"stage\"}\n", "[]\n", "\n", "garbage\n", "{\"id\":\"1\",\"ok\":true}\n",
	};
	char big[3 * RELAY_LINE];
	unsigned int n = sizeof(lines) / sizeof(lines[0]);

	start();
	for (unsigned int i = 0; i < n; i++)
		answer(lines[i]);
	CHECK(guest.refused == n);
	CHECK(!strcmp(said, "brrrrrrr"));
	/* The same while something is asked, and the true answer in the end. */
	notice(1);
	CHECK(strstr(asked(), "notice"));
	answer("{\"id\":1,\"ok\":true}\n{\"cmd\":\"relay\",\"ok\":true}\n");
	CHECK(guest.refused == n + 2 && !guest.told);
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 2] = '\n';
	big[sizeof(big) - 1] = 0;
	answer(big);
	CHECK(guest.refused == n + 3 && !guest.told);
	answer_it("\"ok\":true");
	CHECK(guest.told == 1);
	/* Who does not stop is left alone for a while. */
	for (unsigned int i = 0; i < RELAY_REFUSED && guest.fd >= 0; i++)
		answer("{}\n");
	CHECK(guest.fd < 0 && guest.state == RELAY_CLOSED);
	CHECK(guest.refused <= n + 3 + RELAY_REFUSED);
}

/* Nor is all of a read looked at that is one line after another. */
static void t_many_at_once(void)
{
	char many[RELAY_LINE];
	uint64_t before;

	for (int i = 0; i < 3; i++) {
		start();
		before = guest.refused;
		notice(1);
		asked();
		memset(many, '\n', sizeof(many));
		CHECK(write(peer, many, sizeof(many)) == sizeof(many));
		said[0] = 0;
		serve();
		CHECK_EQ(guest.refused - before, RELAY_REFUSED);
		CHECK_EQ(strlen(said), RELAY_REFUSED + 1);
		CHECK(said[RELAY_REFUSED - 1] == 'r' && said[RELAY_REFUSED] == 'f');
		CHECK(guest.fd < 0 && guest.state == RELAY_CLOSED && guest.begin);
		relay_guest_close(&guest);
	}
}

int main(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *slash = strrchr(path, '/');

	*slash = 0;
	if (!mkdtemp(path))
		return 2;
	*slash = '/';
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1))
		return 2;
	relay_guest_init(&guest, path, "vf0", 1, say);
	t_tells();
	t_begins_anew();
	t_fails();
	t_nothing_upward();
	t_many_at_once();
	relay_guest_close(&guest);
	unlink(path);
	*slash = 0;
	rmdir(path);
	return 0;
}
