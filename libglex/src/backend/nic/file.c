/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * file.c - shared mappings that the program made itself: of a memfd, of a file,
 * or anonymous.  Peers can map the same file, if they are given a descriptor.
 *
 * An object is the part of a file that one mapping of the program shows.  It is
 * made when the first region over it is registered; it lives while there are
 * regions, and, a few of them, as long as the program has the part mapped, for
 * those who register the same buffer again and again.  What cannot be shared is
 * remembered too, or every registration would try again.
 *
 * Touching a page that a file has lost ends a process.  Peers therefore map only
 * what cannot become shorter: sealed files, and anonymous memory, which has no
 * name to shorten it by; GLEX_SHARE_FILES=yes asks for all.  glexd maps sealed
 * ones whatever is asked for.  All else goes by attach.
 */
#include "backend/nic/nic.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/nic/adopt.h"
#include "cfg/cfg.h"
#include "cfg/log.h"

#define IDLE_MAX 16u /* objects without regions that are kept */
#define LOOK_MAX 16u /* mappings of one region that are looked at */

#define ANONYMOUS "/dev/zero (deleted)"

/* ---- which mapping ---------------------------------------------------------- */

static uint64_t overlap(const struct nic_vma *vma, uint64_t addr, uint64_t end)
{
	uint64_t from = addr > vma->start ? addr : vma->start, to = end < vma->end ? end : vma->end;

	return from < to ? to - from : 0;
}

bool nic_file_look(struct nic_device *dev, uint64_t addr, uint64_t len, struct nic_vma *most)
{
	uint64_t at = addr, end = addr + len, best = 0;
	struct nic_vma vma;
	unsigned n;

	for (n = 0; n < LOOK_MAX && at < end && nic_vma_find(dev->vma_fd, at, &vma) && vma.start < end; n++) {
		if (vma.shared && overlap(&vma, addr, end) > best) {
			best = overlap(&vma, addr, end);
			*most = vma;
		}
		at = vma.end;
	}
	return best > 0;
}

/* ---- a descriptor of its file ------------------------------------------------- */

static int mode_of(const struct nic_vma *vma)
{
	return vma->writable ? O_RDWR : O_RDONLY;
}

/* fd if it is that file and can be used as it is mapped, else -1, and fd is closed. */
static int if_right(int fd, const struct nic_vma *vma)
{
	struct stat st;
	int mode;

	if (fd < 0)
		return -1;
	mode = fcntl(fd, F_GETFL);
	if (fstat(fd, &st) == 0 && st.st_ino == vma->ino && st.st_dev == vma->dev && mode >= 0 &&
	    ((mode & O_ACCMODE) == O_RDWR || (mode & O_ACCMODE) == mode_of(vma)))
		return fd;
	close(fd);
	return -1;
}

/* The kernel's own link to it; not for everybody. */
static int by_mapping(const struct nic_vma *vma)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", (unsigned long long)vma->start,
		 (unsigned long long)vma->end);
	return if_right(open(path, mode_of(vma) | O_CLOEXEC), vma);
}

/* A descriptor that the program has open. */
static int by_descriptor(const struct nic_vma *vma)
{
	DIR *open_ones = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while (open_ones && found < 0 && (entry = readdir(open_ones))) {
		int fd = atoi(entry->d_name);
		struct stat st;

		if (entry->d_name[0] == '.' || fd == dirfd(open_ones) || fstat(fd, &st) < 0 || st.st_ino != vma->ino ||
		    st.st_dev != vma->dev)
			continue;
		found = if_right(fcntl(fd, F_DUPFD_CLOEXEC, 0), vma);
	}
	if (open_ones)
		closedir(open_ones);
	return found;
}

static int by_name(const struct nic_vma *vma)
{
	struct stat st;

	if (vma->name[0] != '/' || stat(vma->name, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return if_right(open(vma->name, mode_of(vma) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), vma);
}

static int descriptor_of(const struct nic_vma *vma)
{
	int fd = nic_adopt_is(vma->dev, vma->ino) ? fcntl(nic_adopt.fd, F_DUPFD_CLOEXEC, 0) : by_mapping(vma);

	if (fd < 0)
		fd = by_descriptor(vma);
	return fd < 0 ? by_name(vma) : fd;
}

/* ---- objects; all under dev->lock ---------------------------------------------- */

static bool is_of(const struct nic_file *file, const struct nic_vma *vma)
{
	return file->ino == vma->ino && file->dev == vma->dev && file->offset == vma->offset &&
	       file->len == vma->end - vma->start && file->writable == vma->writable;
}

static bool may_share(int fd, const struct nic_vma *vma)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return glexi_cfg()->share_files == GLEXI_SHARE_YES || (seals >= 0 && seals & F_SEAL_SHRINK) ||
	       strcmp(vma->name, ANONYMOUS) == 0;
}

/* Makes the object known to glexd.  NULL, or why that cannot be. */
static const char *publish(struct nic_device *dev, struct nic_file *file, const struct nic_vma *vma)
{
	struct emu_ctl_msg msg = {.share = {.offset = file->offset, .len = file->len}};
	int fd = descriptor_of(vma), status;

	if (fd < 0)
		return "no descriptor of it can be had";
	if (!may_share(fd, vma)) {
		close(fd);
		return "it is not sealed and so may become shorter; see GLEX_SHARE_FILES";
	}
	status = nic_ctl_call(&dev->ctl, EMU_CTL_SHARE, &msg, fd, NULL);
	close(fd);
	if (status != EMU_CTL_OK)
		return status < 0 ? "glexd is gone" : nic_ctl_status_str(status);
	file->id = msg.share.id;
	file->shared = true;
	return NULL;
}

static struct nic_file *make(struct nic_device *dev, const struct nic_vma *vma)
{
	struct nic_file *file = calloc(1, sizeof(*file));
	const char *why;

	if (!file)
		return NULL;
	*file = (struct nic_file){
		.base = vma->start,
		.len = vma->end - vma->start,
		.dev = vma->dev,
		.ino = vma->ino,
		.offset = vma->offset,
		.writable = vma->writable,
	};
	why = publish(dev, file, vma);
	glexi_info("shared mapping of %llu KiB of %s: %s%s", (unsigned long long)file->len / 1024,
		   vma->name[0] ? vma->name : "a file", why ? "reached by attach: " : "mapped by peers",
		   why ? why : "");
	LIST_INSERT_HEAD(&dev->files, file, link);
	return file;
}

static void drop(struct nic_device *dev, struct nic_file *file)
{
	struct emu_ctl_msg msg = {.share = {.id = file->id}};

	LIST_REMOVE(file, link);
	if (file->shared)
		nic_ctl_call(&dev->ctl, EMU_CTL_UNSHARE, &msg, -1, NULL);
	free(file);
}

/* The program has it mapped where it was found. */
static bool is_mapped(struct nic_device *dev, const struct nic_file *file)
{
	struct nic_vma vma;

	return nic_vma_find(dev->vma_fd, file->base, &vma) && vma.start == file->base && is_of(file, &vma);
}

/* Objects that have no region: those not mapped any more go, and of the others all but the newest. */
static void drop_idle(struct nic_device *dev)
{
	struct nic_file *file, *next;
	unsigned kept = 0;

	for (file = LIST_FIRST(&dev->files); file; file = next) {
		next = LIST_NEXT(file, link);
		if (file->regions == 0 && (!is_mapped(dev, file) || ++kept > IDLE_MAX))
			drop(dev, file);
	}
}

struct nic_file *nic_file_get(struct nic_device *dev, const struct nic_vma *vma)
{
	struct nic_file *file;

	LIST_FOREACH(file, &dev->files, link)
	if (is_of(file, vma))
		break;
	if (!file) {
		drop_idle(dev);
		file = make(dev, vma);
	} else {
		file->base = vma->start;
	}
	return file && file->shared ? file : NULL;
}

void nic_file_put(struct nic_device *dev, uint64_t id)
{
	struct nic_file *file;

	LIST_FOREACH(file, &dev->files, link)
	if (file->shared && file->id == id && file->regions > 0) {
		if (--file->regions == 0)
			drop_idle(dev);
		return;
	}
}

/* The table is asked, for an endpoint takes its regions with it. */
void nic_files_recount(struct nic_device *dev)
{
	struct nic_file *file;
	uint32_t i;

	LIST_FOREACH(file, &dev->files, link)
	file->regions = 0;
	for (i = 0; i < EMU_MMT_UNITS; i++) {
		struct emu_region region;

		if (!emu_mmt_at(dev->nic, i, &region) || region.session != dev->welcome.session ||
		    (region.kind != EMU_KIND_FILE && region.kind != EMU_KIND_ADOPTED))
			continue;
		LIST_FOREACH(file, &dev->files, link)
		if (file->shared && file->id == region.map)
			file->regions++;
	}
	drop_idle(dev);
}

void nic_files_free(struct nic_device *dev)
{
	struct nic_file *file;

	while ((file = LIST_FIRST(&dev->files))) {
		LIST_REMOVE(file, link);
		free(file);
	}
}
