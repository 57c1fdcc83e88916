/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.c - entering regions into the own NIC's table, each with the way by
 * which peers reach it.
 *
 *   memory of glex_alloc       mapped; known by its address               alloc.c
 *   a shared mapping           mapped, if it can be shared; the kernel    file.c
 *                              is asked from FILE_MIN bytes on
 *   private memory             by cross-memory attach; adopted, and so    adopt.c
 *                              mapped, if that is refused or it is used
 *                              often and GLEX_ADOPT allows it
 *
 * For atomic operations, and who asks for it, all of a region must be mapped: private
 * memory is adopted at once, or the region is refused.
 *
 * A region that is made of several kinds goes by the object that covers most of
 * it, and the rest by attach.  Registering small private memory writes the
 * table and nothing else: about a hundred nanoseconds, no talk with glexd.
 */
#include "backend/nic/nic.h"

#include "backend/nic/adopt.h"
#include "cfg/cfg.h"
#include "cfg/log.h"

#define PAGE	 UINT64_C(4096)
#define FILE_MIN PAGE /* smaller ones are moved by a system call in the time of asking what they are */

/* True: memory of glex_alloc. */
static bool is_alloc(struct nic_device *dev, unsigned char *addr, struct emu_region *region)
{
	struct nic_alloc *alloc;

	/* relaxed: who registers memory of glex_alloc has seen that call return */
	if (atomic_load_explicit(&dev->alloc_count, memory_order_relaxed) == 0)
		return false;
	pthread_mutex_lock(&dev->lock);
	alloc = nic_alloc_most(dev, addr, region->len);
	if (alloc) {
		region->way = EMU_WAY_MAP;
		region->kind = EMU_KIND_ALLOC;
		region->map = alloc->id;
		region->map_offset = addr - alloc->base;
	}
	pthread_mutex_unlock(&dev->lock);
	return alloc != NULL;
}

/* Of a region that is_alloc has found. */
static bool is_within_alloc(struct nic_device *dev, const struct emu_region *region)
{
	const struct nic_alloc *alloc;
	bool within;

	pthread_mutex_lock(&dev->lock);
	alloc = nic_alloc_most(dev, (const unsigned char *)(uintptr_t)region->addr, region->len);
	within = alloc && region->map_offset >= 0 && (uint64_t)region->map_offset + region->len <= alloc->len;
	pthread_mutex_unlock(&dev->lock);
	return within;
}

static bool is_refused(const struct nic_device *dev)
{
	/* relaxed: a region registered before this is known is as one that was registered a little earlier */
	return atomic_load_explicit(&dev->engine->no_attach, memory_order_relaxed) != 0;
}

static bool is_adopted(const struct nic_vma *vma)
{
	return nic_adopt_is(vma->dev, vma->ino);
}

/* A shared mapping of the program's or one that its memory was adopted into. */
static bool is_shared(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma)
{
	return nic_file_look(dev, region->addr, region->len, vma) &&
	       (is_adopted(vma) || glexi_cfg()->share_files != GLEXI_SHARE_NO);
}

/* The same, as far as it is worth asking. */
static bool is_found_shared(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma)
{
	return region->len >= FILE_MIN && is_shared(dev, region, vma);
}

static bool covers(const struct nic_vma *vma, const struct emu_region *region)
{
	return vma->start <= region->addr && region->addr + region->len <= vma->end;
}

/* A part of these bytes was adopted; there are whole pages beside it that are not of the same mapping. */
static bool is_part(const struct nic_vma *vma, uint64_t addr, uint64_t len)
{
	return is_adopted(vma) &&
	       (vma->start > (addr + PAGE - 1) / PAGE * PAGE || vma->end < (addr + len) / PAGE * PAGE);
}

/*
 * What no single object covers cannot be reached: attach is refused, or all of it
 * is to be mapped.  Its pages are adopted, also those that it shares with other
 * data, into one piece.  True: *vma is the object that covers it, or most of it.
 */
static bool adopt_all(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma, const char **why_p)
{
	uint64_t from = region->addr / PAGE * PAGE, to = (region->addr + region->len + PAGE - 1) / PAGE * PAGE;

	*why_p = NULL;
	if (is_shared(dev, region, vma) && covers(vma, region))
		return true;
	if (glexi_cfg()->adopt == GLEXI_ADOPT_NEVER)
		*why_p = "GLEX_ADOPT is never";
	else if (nic_adopt_range(dev, from, to, why_p))
		*why_p = NULL;
	return is_shared(dev, region, vma);
}

static bool adopt_refused(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma)
{
	const char *why;
	bool shared = adopt_all(dev, region, vma, &why);

	if (why)
		glexi_info("%llu bytes at %#llx cannot be adopted, and attach is refused: %s",
			   (unsigned long long)region->len, (unsigned long long)region->addr, why);
	return shared;
}

/* *vma: the shared mapping that peers are to map.  False: there is none, or none any object can be made of. */
static bool choose_shared(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma)
{
	bool shared;

	if (GLEXI_UNLIKELY(is_refused(dev)))
		return adopt_refused(dev, region, vma);
	shared = is_found_shared(dev, region, vma);
	if ((!shared || is_part(vma, region->addr, region->len)) && nic_mem_used(dev, region->addr, region->len))
		shared = is_found_shared(dev, region, vma);
	return shared;
}

/* Finding the object and naming it in the table go together: an object that no region names may be dropped. */
static bool enter_shared(struct nic_device *dev, struct emu_region *region, const struct nic_vma *vma, uint64_t *handle)
{
	struct nic_file *file;
	bool entered;

	pthread_mutex_lock(&dev->lock);
	file = nic_file_get(dev, vma);
	if (file) {
		region->way = EMU_WAY_MAP;
		region->kind = is_adopted(vma) ? EMU_KIND_ADOPTED : EMU_KIND_FILE;
		region->map = file->id;
		region->map_offset = (int64_t)(region->addr - vma->start);
	}
	entered = emu_mmt_register(dev->nic, region, handle);
	if (entered && file)
		file->regions++;
	pthread_mutex_unlock(&dev->lock);
	return entered;
}

/* ---- by a mapping or not at all --------------------------------------------------- */

_Static_assert(GLEX_MEM_ATOMIC == EMU_ACCESS_ATOMIC, "one flag for the program and the table");
_Static_assert(GLEXI_MEM_KEPT == EMU_ACCESS_KEPT, "one flag for the layers above and the table");

/* NULL: all of it lies in one object, or is made to; else why not. */
static const char *open_to_all(struct nic_device *dev, const struct emu_region *region, struct nic_vma *vma)
{
	const char *why;

	if (!adopt_all(dev, region, vma, &why))
		return why ? why : "it is not plain private memory";
	if (!covers(vma, region))
		return why ? why : "no single mapping holds all of it";
	return vma->writable ? NULL : "it is not writable";
}

/* False: it cannot be mapped, which is logged, or *full: the table is. */
static bool enter_mapped(struct nic_device *dev, void *addr, struct emu_region *region, int32_t flag, uint64_t *handle,
			 bool *full)
{
	const char *why;
	struct nic_vma vma;
	bool entered;

	*full = true;
	if (is_alloc(dev, addr, region)) {
		why = is_within_alloc(dev, region) ? NULL : "only a part of it is of glex_alloc";
		if (!why)
			return emu_mmt_register(dev->nic, region, handle);
	} else {
		why = open_to_all(dev, region, &vma);
		if (!why) {
			entered = enter_shared(dev, region, &vma, handle);
			if (!entered || region->way == EMU_WAY_MAP)
				return entered;
			emu_mmt_revoke(dev->nic, *handle, region->session, region->ep_num);
			why = "its mapping cannot be shared";
		}
	}
	*full = false;
	if (flag & GLEX_MEM_MAPPED)
		glexi_info("%llu bytes at %#llx cannot be mapped by peers: %s", (unsigned long long)region->len,
			   (unsigned long long)region->addr, why);
	else
		glexi_warn(
			"%llu bytes at %#llx cannot be registered for atomic operations: %s; use memory of glex_alloc",
			(unsigned long long)region->len, (unsigned long long)region->addr, why);
	return false;
}

static bool enter(struct nic_device *dev, void *addr, struct emu_region *region, uint64_t *handle)
{
	struct nic_vma vma;

	if (is_alloc(dev, addr, region))
		return emu_mmt_register(dev->nic, region, handle);
	if (choose_shared(dev, region, &vma))
		return enter_shared(dev, region, &vma, handle);
	return emu_mmt_register(dev->nic, region, handle);
}

glex_ret_t nic_mem_register(struct glexi_ep *ep, void *addr, uint64_t len, int32_t flag, glex_mem_handle_t *mh)
{
	struct nic_ep *nep = ep->be;
	struct nic_device *dev = nep->dev;
	struct emu_region region = {
		.addr = (uintptr_t)addr,
		.len = len,
		.key = ep->attr.key,
		.pid = dev->welcome.pid,
		.session = dev->welcome.session,
		.ep_num = ep->attr.num,
		.access = (uint32_t)flag & (GLEX_MEM_READ | GLEX_MEM_WRITE | GLEX_MEM_ATOMIC | EMU_ACCESS_KEPT),
		.way = EMU_WAY_ATTACH,
		.kind = EMU_KIND_PRIVATE,
	};
	bool full = true, is_trial = flag & (GLEXI_MEM_TRIAL | GLEX_MEM_MAPPED);

	if (!nic_quota_take(nep, addr, len, is_trial))
		return GLEX_NO_MEM_RESOURCE;
	if (GLEXI_UNLIKELY(flag & (GLEX_MEM_ATOMIC | GLEX_MEM_MAPPED))
		    ? enter_mapped(dev, addr, &region, flag, &mh->v, &full)
		    : enter(dev, addr, &region, &mh->v))
		return GLEX_SUCCESS;
	nic_quota_give(nep, region.addr, len);
	if (!full)
		return GLEX_SYS_ERR;
	if (!is_trial)
		glexi_warn_once(
			dev->welcome.nic_id,
			"registering %llu bytes failed (GLEX_NO_MEM_RESOURCE): the memory table of NIC %u is full, "
			"%u regions; deregister some, or spread processes over more nodes (GLEX_PPN, GLEX_NODE)",
			(unsigned long long)len, dev->welcome.nic_id, EMU_MMT_UNITS);
	return GLEX_NO_MEM_RESOURCE;
}

static bool has_object(const struct emu_region *region)
{
	return region->kind == EMU_KIND_FILE || region->kind == EMU_KIND_ADOPTED;
}

/* ---- a better way ---------------------------------------------------------------- */

/* Whether a region that has none may get an object while it is registered. */
static bool may_be_remapped(const struct emu_region *region)
{
	return region->kind == EMU_KIND_PRIVATE && !(region->access & EMU_ACCESS_KEPT) &&
	       region->len >= glexi_cfg()->adopt_min;
}

/* Under dev->lock, so that nobody revokes it. */
static bool remap(struct nic_device *dev, uint32_t index)
{
	struct emu_region region;
	struct nic_file *file;
	struct nic_vma vma;

	if (!emu_mmt_at(dev->nic, index, &region) || region.session != dev->welcome.session ||
	    !may_be_remapped(&region) || !nic_file_look(dev, region.addr, region.len, &vma) || !is_adopted(&vma))
		return false;
	file = nic_file_get(dev, &vma);
	if (!file)
		return false;
	emu_mmt_map(&region, file->id, (int64_t)(region.addr - vma.start), EMU_KIND_ADOPTED);
	file->regions++;
	return true;
}

void nic_mem_remap(struct nic_device *dev, uint64_t addr, uint64_t end)
{
	struct emu_region region;
	unsigned remapped = 0;

	for (uint32_t i = 0; i < EMU_MMT_UNITS; i++) {
		if (!emu_mmt_at(dev->nic, i, &region) || region.addr >= end || addr >= region.addr + region.len)
			continue;
		pthread_mutex_lock(&dev->lock);
		remapped += remap(dev, i);
		pthread_mutex_unlock(&dev->lock);
	}
	if (remapped)
		glexi_info("adopted: %u regions at %#llx are mapped by peers from now on, under the handles they have",
			   remapped, (unsigned long long)addr);
}

/* ---- deregistering --------------------------------------------------------------- */

/* As emu_mmt_revoke; the object of a file and the quota are told. */
static bool leave(struct nic_ep *nep, uint64_t handle)
{
	struct nic_device *dev = nep->dev;
	uint32_t session = dev->welcome.session, num = nep->ep->attr.num;
	struct emu_region region;
	bool left;

	if (!emu_mmt_find(dev->nic, handle, &region))
		return false;
	if (!has_object(&region) && !may_be_remapped(&region)) {
		left = emu_mmt_revoke(dev->nic, handle, session, num);
	} else {
		pthread_mutex_lock(&dev->lock);
		left = emu_mmt_find(dev->nic, handle, &region) && emu_mmt_revoke(dev->nic, handle, session, num);
		if (left && has_object(&region))
			nic_file_put(dev, region.map);
		pthread_mutex_unlock(&dev->lock);
	}
	if (left)
		nic_quota_give(nep, region.addr, region.len);
	return left;
}

glex_ret_t nic_mem_deregister(struct glexi_ep *ep, glex_mem_handle_t mh)
{
	if (leave(ep->be, mh.v))
		return GLEX_SUCCESS;
	/* a glexd that ends takes the regions back before we know that it is gone */
	return glexi_device_check(ep->dev) == GLEX_SUCCESS ? GLEX_INVALID_PARAM : GLEX_SYS_ERR;
}

bool nic_mem_is_split(struct glexi_device *device, void *addr, uint64_t len)
{
	const struct nic_device *dev = device->be;
	uint64_t at = ((uintptr_t)addr + PAGE - 1) / PAGE * PAGE, end = ((uintptr_t)addr + len) / PAGE * PAGE;
	struct nic_vma vma;

	while (at < end && nic_vma_find(dev->vma_fd, at, &vma) && vma.start < end) {
		if (is_adopted(&vma))
			return is_part(&vma, (uintptr_t)addr, len);
		at = vma.end;
	}
	return false;
}

enum glexi_mem_tie nic_mem_tie(struct glexi_ep *ep, glex_mem_handle_t mh)
{
	struct nic_ep *nep = ep->be;
	struct emu_region region;

	if (!emu_mmt_find(nep->dev->nic, mh.v, &region) || region.way == EMU_WAY_ATTACH)
		return GLEXI_TIED_TO_ADDRESS;
	return region.kind == EMU_KIND_ALLOC ? GLEXI_TIED_TO_ALLOC : GLEXI_TIED_TO_OBJECT;
}
