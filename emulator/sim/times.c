/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * times.c - how long things take on two machines, and where each number is from.
 *
 * Published, and what they fix:
 *   th2    Pang et al., The TH Express high performance interconnect networks, 2014, Table 1:
 *          an MP from host to host takes 1.30 us (PIO, connectless): the sum of post, to_nic, tx,
 *          one router, two links, wire, rx, to_host, poll.
 *   aries  Cray XC Series Network, WP-Aries01-1112, "Aries Performance": a put of 8 bytes takes
 *          0.8 us: the same sum; an MPI message 1.3 us: send and recv besides.
 * A part that only the sum is known of says so.
 */
#include "emulator/sim/sim.h"

#include <string.h>

#define TABLE1 "assumed share of the 1.30 us of an MP (Table 1)"
#define PUT08  "assumed share of the 0.8 us of a put (white paper, p. 22)"

#define ROW(name, what) #name, what, offsetof(struct sim_times, name)

const struct sim_time_row sim_time_rows[] = {
	{ROW(post, "CPU: the first request of a list is written to the NIC"), 100, 50, TABLE1, PUT08},
	{ROW(more, "CPU: each further request of that list"), 30, 0,
	 "assumed: 128 bytes by write-combining stores at some 4 GB/s",
	 "the engine holds the tree; a collective is one request (p. 12)"},
	{ROW(to_nic, "from the CPU to the NIC"), 175, 200,
	 "half of the 300 to 400 ns that fetching a descriptor over PCIe adds (section 5)", PUT08},
	{ROW(tx, "NIC: a packet leaves"), 100, 50, TABLE1, PUT08},
	{ROW(gap, "NIC: from one packet that leaves to the next"), 25, 8.3, "assumed: twice what its 128 bytes take",
	 "120 million puts a second and node (Figure 13)"},
	{ROW(router, "through one router"), 100, 90, "assumed: as on Aries, of the same years",
	 "100 ns a hop from router to router, with its link (p. 22)"},
	{ROW(link, "over one cable"), 20, 10, "assumed: 4 m at 5 ns/m", "see router"},
	{ROW(global, "what a cable between groups takes longer"), 0, 0, "the fat tree has none",
	 "500 ns at most for five hops, one of them global (p. 22)"},
	{ROW(wire, "the bytes of a packet pass"), 11, 16, "128 bytes at 11.7 GB/s (section 5)",
	 "14 flits of 48 bits at 5.25 GB/s (p. 21)"},
	{ROW(byte, "one byte of a PUT passes"), 0.0855, 0.1, "11.7 GB/s for PUTs one way (section 5)",
	 "up to 10 GB/s from process to process, one way (p. 22)"},
	{ROW(rx, "NIC: a packet has come in and is dealt with"), 100, 50, TABLE1, PUT08},
	{ROW(rx_gap, "NIC: from one packet that comes in to the next"), 25, 8.3, "as gap", "as gap"},
	{ROW(trigger, "NIC: from the last control packet to the first packet it triggers"), 50, 50,
	 "assumed: descriptors are on the chip (section 2.5)", "assumed: 40 cycles of 800 MHz"},
	{ROW(reduce, "NIC: one operand more"), 10, 2.5, "assumed: some cycles",
	 "assumed: two cycles of 800 MHz, as the AMO unit takes for an operation (p. 24)"},
	{ROW(to_host, "from the NIC into memory, where the CPU sees it"), 624, 274, TABLE1, PUT08},
	{ROW(poll, "CPU: a packet is taken"), 50, 50, TABLE1, PUT08},
	{ROW(send, "CPU: the software above, per message sent or collective begun"), 0, 250,
	 "MPI adds hardly anything where it uses MPs (section 5)",
	 "half of what MPI adds to a put, 1.3 - 0.8 us (p. 22)"},
	{ROW(recv, "CPU: the same, per message received or collective ended"), 0, 250, "see send", "see send"},
	{ROW(combine, "CPU: one operand more, where hosts reduce"), 20, 20, "assumed: some loads from the cache",
	 "assumed: some loads from the cache"},
	{ROW(local, "between two processes of a node"), 150, 150, "assumed: a cache line between cores, and MPI",
	 "assumed: a cache line between cores, and MPI"},
};

const size_t sim_time_row_count = sizeof(sim_time_rows) / sizeof(sim_time_rows[0]);

static double *time_at(struct sim_times *times, const struct sim_time_row *row)
{
	return (double *)(void *)((char *)times + row->offset);
}

double *sim_time_find(struct sim_times *times, const char *name)
{
	size_t i;

	for (i = 0; i < sim_time_row_count; i++)
		if (strcmp(sim_time_rows[i].name, name) == 0)
			return time_at(times, &sim_time_rows[i]);
	return NULL;
}

bool sim_machine_find(const char *name, struct sim_machine *machine)
{
	bool aries = strcmp(name, "aries") == 0;
	size_t i;

	if (!aries && strcmp(name, "th2") != 0)
		return false;
	*machine = aries ? (struct sim_machine){.name = "aries",
						.what = "Cray XC, Aries collective engine",
						.topo = {SIM_DRAGONFLY, 0},
						.processes = 16}
			 : (struct sim_machine){.name = "th2",
						.what = "TH Express-2 of the Tianhe-2",
						.topo = {SIM_FAT_TREE, 24},
						.processes = 1};
	for (i = 0; i < sim_time_row_count; i++)
		*time_at(&machine->times, &sim_time_rows[i]) = aries ? sim_time_rows[i].aries : sim_time_rows[i].th2;
	return true;
}
