/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * together.h - functions that are to lie together, apart from all else.
 *
 * Where translations of addresses are gone, each page that is touched is walked for anew: behind a system call of a
 * kernel with page tables of its own and no tags, as in transfers by attach, and at each turn of one of many
 * ranks on a processor, as in collectives.
 */
#ifndef EMU_TOGETHER_H
#define EMU_TOGETHER_H

#define EMU_TOGETHER __attribute__((hot))

#endif /* EMU_TOGETHER_H */
