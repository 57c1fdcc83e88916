/* SPDX-License-Identifier: BSD-2-Clause */
/* pid_ns.h - which PID namespace this process is in. */
#ifndef EMU_PID_NS_H
#define EMU_PID_NS_H

#include <stdint.h>
#include <sys/stat.h>

/* Its number, the same in all processes of the namespace and in no other; 0: not known, for there is no /proc. */
static inline uint64_t emu_pid_namespace(void)
{
	struct stat ns;

	return stat("/proc/self/ns/pid", &ns) == 0 ? (uint64_t)ns.st_ino : 0;
}

#endif /* EMU_PID_NS_H */
