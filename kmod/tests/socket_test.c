// SPDX-License-Identifier: GPL-2.0
/* kunit-cases: 5 */
/*
 * Processes that have registered, and who listens, are known by their sockets. The address of one that is closed is
 * free, and another one's, before its end is told.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../listen.c"
#include "../proc.c"

static struct {
	int left, followed, sent;
} fake;

void repath_qp_follow(void)
{
	fake.followed++;
}

void repath_qp_unfollow(void)
{
	fake.followed--;
}

void repath_conn_proc_left(struct repath_proc *proc)
{
	fake.left++;
}

void repath_conn_adopt(struct repath_proc *proc)
{
}

void repath_op_proc_left(struct repath_proc *proc)
{
}

void repath_event_process(struct pid *tgid, enum repath_ev_action action)
{
}

u32 repath_number_count(void)
{
	return 0;
}

struct repath_device *repath_device_get_by_index(const struct net *net, u32 index)
{
	return NULL;
}

struct sk_buff *repath_nl_msg_new(u8 cmd, size_t size, void **hdr)
{
	*hdr = NULL;
	return nlmsg_new(size, GFP_KERNEL);
}

struct sk_buff *repath_nl_reply_new(struct genl_info *info, size_t size, void **hdr)
{
	return repath_nl_msg_new(0, size, hdr);
}

int repath_nl_reply(struct genl_info *info, struct sk_buff *skb, void *hdr)
{
	nlmsg_free(skb);
	return 0;
}

int repath_nl_unicast(struct net *net, u32 portid, struct sk_buff *skb, void *hdr)
{
	fake.sent++;
	nlmsg_free(skb);
	return 0;
}

bool repath_nl_has_listeners(struct net *net, enum repath_nl_group group)
{
	return false;
}

void repath_nl_multicast(struct net *net, enum repath_nl_group group, struct sk_buff *skb,
			 void *hdr)
{
	nlmsg_free(skb);
}

#define PORTID 77

struct ctx {
	struct sock sk[2];
	struct pid *tgid[2];
};

static struct ctx *of(struct kunit *test)
{
	return test->priv;
}

static int socket_init(struct kunit *test)
{
	struct ctx *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	int i;

	if (!c)
		return -ENOMEM;
	memset(&fake, 0, sizeof(fake));
	for (i = 0; i < 2; i++) {
		refcount_set(&c->sk[i].sk_refcnt, 1);
		c->tgid[i] = find_get_pid(i + 1);
	}
	test->priv = c;
	return c->tgid[0] && c->tgid[1] ? 0 : -ESRCH;
}

static void socket_exit(struct kunit *test)
{
	struct ctx *c = of(test);
	int i;

	if (!c)
		return;
	repath_listen_exit();
	repath_proc_exit();
	for (i = 0; i < 2; i++) {
		put_pid(c->tgid[i]);
		KUNIT_EXPECT_EQ(test, refcount_read(&c->sk[i].sk_refcnt), 1u);
	}
	KUNIT_EXPECT_EQ(test, fake.followed, 0);
}

static int add(struct kunit *test, int sk, int tgid)
{
	struct ctx *c = of(test);
	struct repath_proc *proc = proc_add(&init_net, &c->sk[sk], PORTID, c->tgid[tgid], "fake");
	int err = PTR_ERR_OR_ZERO(proc);

	if (!err)
		repath_proc_put(proc);
	return err;
}

static bool is_registered(struct kunit *test, int tgid)
{
	struct repath_proc *proc = repath_proc_find(of(test)->tgid[tgid]);

	repath_proc_put(proc);
	return proc;
}

static void t_registered_on_a_socket(struct kunit *test)
{
	struct ctx *c = of(test);

	KUNIT_EXPECT_EQ(test, add(test, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, add(test, 0, 0), -EALREADY);
	KUNIT_EXPECT_EQ(test, add(test, 0, 1), -EBUSY);
	KUNIT_EXPECT_EQ(test, add(test, 1, 0), -EBUSY);
	sock_set_flag(&c->sk[0], SOCK_DEAD);
	repath_proc_released(&init_net, PORTID + 1);
	KUNIT_EXPECT_TRUE(test, is_registered(test, 0));
	repath_proc_released(&init_net, PORTID);
	KUNIT_EXPECT_FALSE(test, is_registered(test, 0));
	KUNIT_EXPECT_EQ(test, fake.left, 1);
}

/* One socket is closed; before that is told, another process has its address, and registers. */
static void t_address_is_anothers(struct kunit *test)
{
	struct ctx *c = of(test);

	sock_set_flag(&c->sk[0], SOCK_DEAD);
	KUNIT_EXPECT_EQ(test, add(test, 1, 1), 0);
	repath_proc_released(&init_net, PORTID);
	KUNIT_EXPECT_TRUE(test, is_registered(test, 1));

	/* So, too, if the first one had registered. */
	sock_set_flag(&c->sk[1], SOCK_DEAD);
	sock_reset_flag(&c->sk[0], SOCK_DEAD);
	KUNIT_EXPECT_EQ(test, add(test, 0, 0), 0);
	repath_proc_released(&init_net, PORTID);
	KUNIT_EXPECT_TRUE(test, is_registered(test, 0));
	KUNIT_EXPECT_FALSE(test, is_registered(test, 1));
	KUNIT_EXPECT_EQ(test, fake.left, 1);
}

static int say(struct repath_proc *proc)
{
	struct sk_buff *skb;
	void *hdr;

	fake.sent = 0;
	skb = repath_nl_msg_new(0, 64, &hdr);
	return repath_proc_send(proc, skb, hdr);
}

/* What is for a process whose socket is closed does not get to who has its address next. */
static void t_is_told_on_its_own_socket(struct kunit *test)
{
	struct ctx *c = of(test);
	struct repath_proc *proc;

	KUNIT_EXPECT_EQ(test, add(test, 0, 0), 0);
	proc = repath_proc_find(c->tgid[0]);
	KUNIT_ASSERT_NOT_NULL(test, proc);
	KUNIT_EXPECT_EQ(test, say(proc), 0);
	KUNIT_EXPECT_EQ(test, fake.sent, 1);
	sock_set_flag(&c->sk[0], SOCK_DEAD);
	KUNIT_EXPECT_EQ(test, say(proc), -ESRCH);
	KUNIT_EXPECT_EQ(test, fake.sent, 0);
	repath_proc_put(proc);
}

static int fill(struct sk_buff *skb, struct pid_namespace *ns, void *arg)
{
	return 0;
}

/* How many hear of an event? */
static int heard(void)
{
	fake.sent = 0;
	repath_listen_tell(&init_net, REPATH_CMD_EV_QP, 64, fill, NULL);
	return fake.sent;
}

static void listen(struct kunit *test, int sk)
{
	struct sk_buff *skb = nlmsg_new(64, GFP_KERNEL);
	struct genl_info info = { .snd_portid = PORTID };

	KUNIT_ASSERT_NOT_NULL(test, skb);
	genl_info_net_set(&info, &init_net);
	NETLINK_CB(skb).sk = &of(test)->sk[sk];
	KUNIT_EXPECT_EQ(test, repath_listen_cmd(skb, &info), 0);
	nlmsg_free(skb);
}

static void t_listens_on_a_socket(struct kunit *test)
{
	struct ctx *c = of(test);

	listen(test, 0);
	listen(test, 0);
	KUNIT_EXPECT_EQ(test, heard(), 1);
	sock_set_flag(&c->sk[0], SOCK_DEAD);
	KUNIT_EXPECT_EQ(test, heard(), 0);
	listen(test, 1);
	KUNIT_EXPECT_EQ(test, heard(), 1);
	repath_listen_released(&init_net, PORTID);
	KUNIT_EXPECT_EQ(test, heard(), 1);
	/* A third one, which did not listen. */
	repath_listen_released(&init_net, PORTID);
	KUNIT_EXPECT_EQ(test, heard(), 1);
	sock_set_flag(&c->sk[1], SOCK_DEAD);
	repath_listen_released(&init_net, PORTID);
	KUNIT_EXPECT_EQ(test, heard(), 0);
}

/* Whoever one is in a namespace of one's own, and however deep. */
static void t_is_one_user_in_all_namespaces(struct kunit *test)
{
	struct user_namespace *outer = kunit_kzalloc(test, sizeof(*outer), GFP_KERNEL);
	struct user_namespace *inner = kunit_kzalloc(test, sizeof(*inner), GFP_KERNEL);
	struct cred *cred = kunit_kzalloc(test, sizeof(*cred), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, outer && inner && cred);
	cred->uid = KUIDT_INIT(1000);
	cred->user_ns = &init_user_ns;
	KUNIT_EXPECT_EQ(test, __kuid_val(user_of(cred)), 1000u);
	/* A subordinate one. */
	cred->uid = KUIDT_INIT(100001);
	cred->user_ns = outer;
	outer->parent = &init_user_ns;
	outer->owner = KUIDT_INIT(1000);
	KUNIT_EXPECT_EQ(test, __kuid_val(user_of(cred)), 1000u);
	cred->user_ns = inner;
	inner->parent = outer;
	inner->owner = KUIDT_INIT(100001);
	KUNIT_EXPECT_EQ(test, __kuid_val(user_of(cred)), 1000u);
	/* The administrator's namespaces are not all one. */
	outer->owner = GLOBAL_ROOT_UID;
	outer->uid_map.nr_extents = 1;
	outer->uid_map.extent[0] = (struct uid_gid_extent) {
		.first = 0, .lower_first = 100000, .count = 65536,
	};
	KUNIT_EXPECT_EQ(test, __kuid_val(user_of(cred)), 100000u);
}

static struct kunit_case socket_cases[] = {
	KUNIT_CASE(t_registered_on_a_socket),
	KUNIT_CASE(t_address_is_anothers),
	KUNIT_CASE(t_is_told_on_its_own_socket),
	KUNIT_CASE(t_listens_on_a_socket),
	KUNIT_CASE(t_is_one_user_in_all_namespaces),
	{}
};

static struct kunit_suite socket_suite = {
	.name = "repath_socket",
	.init = socket_init,
	.exit = socket_exit,
	.test_cases = socket_cases,
};
kunit_test_suite(socket_suite);
MODULE_LICENSE("GPL");
