// SPDX-License-Identifier: GPL-2.0
/*
 * Mapping of queues into programs, in the place of rdmavt's. The difference is what happens when
 * the HCA is removed while a program lives: rdmavt's mapping refers to the queue, and through it to
 * the context and the device, which are gone by the time it ends. Here it refers to nothing:
 * remap_vmalloc_range() puts the pages themselves into the page table, each with a reference, and
 * they stay as long as any mapping does. A program that goes on looking at a queue of an HCA that
 * is no more sees its last state, as it does after a PCI card was pulled.
 */
#include <linux/vmalloc.h>

#include "vhca.h"

static struct rvt_mmap_info *find(struct rvt_dev_info *rdi, struct ib_ucontext *context,
				  u64 offset, unsigned long size)
{
	struct rvt_mmap_info *info;

	list_for_each_entry(info, &rdi->pending_mmaps, pending_mmaps)
		if (info->context == context && info->offset == offset)
			return size <= info->size ? info : NULL;
	return NULL;
}

static void release(struct kref *ref)
{
	struct rvt_mmap_info *info = container_of(ref, struct rvt_mmap_info, ref);

	vfree(info->obj);
	kfree(info);
}

int vhca_mmap(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct rvt_dev_info *rdi = ib_to_rvt(context->device);
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct rvt_mmap_info *info;
	int err;

	spin_lock_irq(&rdi->pending_lock);
	info = find(rdi, context, offset, vma->vm_end - vma->vm_start);
	if (info) {
		list_del_init(&info->pending_mmaps);
		kref_get(&info->ref);	/* the queue may be destroyed meanwhile */
	}
	spin_unlock_irq(&rdi->pending_lock);
	if (!info)
		return -EINVAL;
	err = remap_vmalloc_range(vma, info->obj, 0);
	kref_put(&info->ref, release);
	return err;
}
