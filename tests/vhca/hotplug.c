// SPDX-License-Identifier: GPL-2.0
/*
 * HCAs come and go at run time:
 *
 *	echo 'vhca0 H1 udp:127.0.0.1:7000 guid=0x2c90200001 ports=2' > /sys/devices/vhca/add
 *	echo vhca0 > /sys/devices/vhca/remove
 *
 * that is the name, the host of the topology whose place it takes, and where vfabric listens. Ports
 * (1) and the GUID (made from the name) may be left out. Removing works while programs use it. With
 * numbers=N it gives out those that the HCA added as number N, from 0 on, gave out first. With
 * vfs=N it is a PF that shares its port; vguids=A,B,.. are its VFs' GUIDs, 0 or none for what the SM is
 * to choose. With function=N it is VF N of that host's PF. A VF's GUID comes and goes with its VM:
 *
 *	echo 'vhca0 1 none' > /sys/devices/vhca/vguid
 *	echo 'vhca0 1 0x2c9ff00000001' > /sys/devices/vhca/vguid
 */
#include <linux/device.h>
#include <linux/inet.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "function.h"

static struct device *root;
static LIST_HEAD(devices);
static DEFINE_MUTEX(lock);		/* the list, and that one comes or goes at a time */

struct wanted {
	char name[32], host[64], where[64];
	struct sockaddr_storage to;
	u64 guid;
	unsigned int ports, function, vfs;
	int numbers;
	u64 vguid[VHCA_MAX_FUNCTIONS];
};

static bool parse_where(struct wanted *w)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&w->to;
	const char *end;
	u16 number;

	if (strncmp(w->where, "udp:", 4) ||
	    !in4_pton(w->where + 4, -1, (u8 *)&in->sin_addr, ':', &end) || *end != ':' ||
	    kstrtou16(end + 1, 10, &number) || !number)
		return false;
	in->sin_family = AF_INET;
	in->sin_port = htons(number);
	return true;
}

/* The default GUID: locally administered, and the same for the same name. */
static u64 guid_of(const char *name)
{
	u64 hash = jhash(name, strlen(name), 0);

	return 0x0200000000000000ull | hash << 8;
}

static int parse_vguids(char *list, u64 *vguid)
{
	unsigned int i;
	char *one;
	int err = 0;

	for (i = 1; !err && (one = strsep(&list, ",")); i++)
		err = i < VHCA_MAX_FUNCTIONS ? kstrtou64(one, 0, &vguid[i]) : -EINVAL;
	return err;
}

static int parse(const char *text, struct wanted *w)
{
	char *copy, *rest, *word;
	int err = 0;

	memset(w, 0, sizeof(*w));
	w->ports = 1;
	w->numbers = -1;
	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	if (sscanf(rest, "%31s %63s %63s", w->name, w->host, w->where) != 3 || !parse_where(w) ||
	    strpbrk(w->name, "/%"))
		err = -EINVAL;
	w->guid = guid_of(w->name);
	while (!err && (word = strsep(&rest, " "))) {
		if (!strncmp(word, "guid=", 5))
			err = kstrtou64(word + 5, 0, &w->guid);
		else if (!strncmp(word, "ports=", 6))
			err = kstrtouint(word + 6, 0, &w->ports);
		else if (!strncmp(word, "function=", 9))
			err = kstrtouint(word + 9, 0, &w->function);
		else if (!strncmp(word, "vfs=", 4))
			err = kstrtouint(word + 4, 0, &w->vfs);
		else if (!strncmp(word, "vguids=", 7))
			err = parse_vguids(word + 7, w->vguid);
		else if (!strncmp(word, "numbers=", 8))
			err = kstrtoint(word + 8, 0, &w->numbers);
	}
	if (!err && (w->function || w->vfs) &&
	    (w->ports != 1 || (w->function && w->vfs) || w->function >= VHCA_MAX_FUNCTIONS ||
	     w->vfs >= VHCA_MAX_FUNCTIONS))
		err = -EINVAL;
	if (!err && (!w->guid || w->ports < 1 || w->ports > VHCA_MAX_PORTS))
		err = -EINVAL;
	kfree(copy);
	return err;
}

static struct vhca_dev *find(const char *name)
{
	struct vhca_dev *dev;

	lockdep_assert_held(&lock);
	list_for_each_entry(dev, &devices, list)
		if (!strcmp(dev_name(&dev->rdi.ibdev.dev), name))
			return dev;
	return NULL;
}

static void release_pci(struct device *device)
{
	kfree(to_pci_dev(device));
}

/* Not on any bus: rdmavt reads its name, for what it prints. */
static struct pci_dev *fake_pci(const char *name)
{
	struct pci_dev *pci = kzalloc(sizeof(*pci), GFP_KERNEL);

	if (!pci)
		return NULL;
	device_initialize(&pci->dev);
	pci->dev.release = release_pci;
	if (dev_set_name(&pci->dev, "%s", name)) {
		put_device(&pci->dev);
		return NULL;
	}
	return pci;
}

static int create(const struct wanted *w)
{
	struct rvt_dev_info *rdi;
	struct vhca_dev *dev;
	int err = -ENOMEM;

	if (find(w->name))
		return -EEXIST;
	rdi = rvt_alloc_device(sizeof(*dev), w->ports);
	if (!rdi)
		return -ENOMEM;
	dev = container_of(rdi, struct vhca_dev, rdi);
	/* rvt_set_ibdev_name() wants a number behind it. */
	dev_set_name(&rdi->ibdev.dev, "%s", w->name);
	strscpy(rdi->ibdev.name, w->name, IB_DEVICE_NAME_MAX);
	dev->parent = root;
	dev->guid = w->guid;
	dev->nports = w->ports;
	dev->function = w->function;
	dev->vfs = w->vfs;
	dev->numbers = w->numbers;
	memcpy(dev->vguid, w->vguid, sizeof(dev->vguid));
	dev->to = w->to;
	dev->to_size = sizeof(struct sockaddr_in);
	strscpy(dev->host, w->host, sizeof(dev->host));
	strscpy(dev->where, w->where, sizeof(dev->where));
	dev->pci = fake_pci(w->name);
	if (!dev->pci)
		goto err_device;
	dev->wq = alloc_workqueue("%s", WQ_UNBOUND | WQ_HIGHPRI, 0, w->name);
	if (!dev->wq)
		goto err_pci;
	err = vhca_dev_register(dev);
	if (err)
		goto err_wq;
	list_add_tail(&dev->list, &devices);
	return 0;

err_wq:
	destroy_workqueue(dev->wq);
err_pci:
	put_device(&dev->pci->dev);
err_device:
	rvt_dealloc_device(rdi);
	return err;
}

static void destroy(struct vhca_dev *dev)
{
	list_del(&dev->list);
	vhca_dev_unregister(dev);
	destroy_workqueue(dev->wq);
	put_device(&dev->pci->dev);
	rvt_dealloc_device(&dev->rdi);
}

static ssize_t add_store(struct device *device, struct device_attribute *attr, const char *text,
			 size_t size)
{
	struct wanted w;
	int err = parse(text, &w);

	if (err)
		return err;
	mutex_lock(&lock);
	err = create(&w);
	mutex_unlock(&lock);
	return err ?: size;
}
static DEVICE_ATTR_WO(add);

static ssize_t remove_store(struct device *device, struct device_attribute *attr,
			    const char *text, size_t size)
{
	struct vhca_dev *dev;
	char name[32];

	if (sscanf(text, "%31s", name) != 1)
		return -EINVAL;
	mutex_lock(&lock);
	dev = find(name);
	if (dev)
		destroy(dev);
	mutex_unlock(&lock);
	return dev ? size : -ENODEV;
}
static DEVICE_ATTR_WO(remove);

static ssize_t vguid_store(struct device *device, struct device_attribute *attr,
			   const char *text, size_t size)
{
	char name[32], value[32];
	struct vhca_dev *dev;
	unsigned int vf;
	u64 guid = VHCA_NO_VGUID;
	int err = -ENODEV;

	if (sscanf(text, "%31s %u %31s", name, &vf, value) != 3 ||
	    (strcmp(value, "none") && kstrtou64(value, 0, &guid)))
		return -EINVAL;
	mutex_lock(&lock);
	dev = find(name);
	if (dev && vf >= 1 && vf <= dev->vfs) {
		WRITE_ONCE(dev->vguid[vf], guid);
		vhca_vguids_tell(&dev->port[0]);
		err = 0;
	}
	mutex_unlock(&lock);
	return err ?: size;
}
static DEVICE_ATTR_WO(vguid);

static struct attribute *root_attrs[] = {
	&dev_attr_add.attr,
	&dev_attr_remove.attr,
	&dev_attr_vguid.attr,
	NULL,
};
ATTRIBUTE_GROUPS(root);

int vhca_hotplug_init(void)
{
	int err;

	root = root_device_register("vhca");
	if (IS_ERR(root))
		return PTR_ERR(root);
	err = device_add_groups(root, root_groups);
	if (err)
		root_device_unregister(root);
	return err;
}

void vhca_hotplug_exit(void)
{
	struct vhca_dev *dev, *next;

	/* (1) Nobody adds any more, (2) all go, (3) and nothing has this as its parent then. */
	device_remove_groups(root, root_groups);
	list_for_each_entry_safe(dev, next, &devices, list)
		destroy(dev);
	root_device_unregister(root);
}
