/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile.c - says to glexd what no libglex says, or answers libglex as no glexd
 * would; for the stories of test/integ.
 *
 *	hostile hello            HELLOs that must be refused, and why
 *	hostile fuzz SEED N      N messages of random length, head, content and descriptors
 *	hostile crowd N          N connections, most of them silent; some never take replies
 *	hostile descriptors SEED garbage in the descriptor queue of a port of its own
 *	hostile serve HOW        listens on GLEX_SOCKET until killed: HOW is version, access,
 *	                         garbage, short, close; busy, asleep: version, but for longer than a silent glexd is waited
 *	                         for it has something else to do, or nothing
 *
 * Exit status 0: everything was answered as it should be, and glexd lives.
 */
#include <fcntl.h>
#include <glex.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "emulator/abi/shm_layout.h"
#include "emulator/host/futex.h"
#include "test/lib/raw.h"

static char name[128];
static uint64_t seed;

static uint32_t any(uint32_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % below;
}

static void scribble(void *data, size_t size)
{
	unsigned char *p = data;

	while (size-- > 0)
		*p++ = (unsigned char)any(256);
}

static void die(const char *why)
{
	printf("%s\n", why);
	exit(EXIT_FAILURE);
}

static int dial(void)
{
	int fd = raw_dial(name);

	if (fd < 0)
		die("glexd does not listen any more");
	return fd;
}

static void must_live(void)
{
	if (raw_glexd_pid(name) == 0)
		die("glexd does not answer any more");
}

/* ---- HELLO ------------------------------------------------------------------------- */

static void expect(const char *what, int fd, const struct emu_ctl_msg *msg, int want)
{
	struct emu_ctl_msg reply;

	if (!raw_send(fd, msg, sizeof(*msg), NULL, 0) || !raw_receive(fd, &reply, NULL) || reply.head.code != want) {
		printf("%s: expected status %d\n", what, want);
		exit(EXIT_FAILURE);
	}
	close(fd);
}

static struct emu_ctl_msg sound_hello(void)
{
	struct emu_ctl_msg msg;

	raw_hello(&msg, false);
	msg.head = (struct emu_ctl_head){EMU_WIRE_MAGIC, EMU_WIRE_VERSION, EMU_CTL_HELLO};
	return msg;
}

static int hello(void)
{
	struct emu_ctl_msg msg = sound_hello();

	msg.hello.abi_version++;
	expect("another abi_version", dial(), &msg, EMU_CTL_VERSION);
	msg = sound_hello();
	msg.hello.layout_hash ^= 1;
	expect("another layout_hash", dial(), &msg, EMU_CTL_VERSION);
	msg = sound_hello();
	msg.head.version++;
	expect("another wire version", dial(), &msg, EMU_CTL_VERSION);
	msg = sound_hello();
	msg.head.magic = 0;
	expect("another magic", dial(), &msg, EMU_CTL_VERSION);
	msg = sound_hello();
	msg.head.code = EMU_CTL_PORT_LIST;
	expect("a request before HELLO", dial(), &msg, EMU_CTL_BAD);
	msg = sound_hello();
	msg.head.code = 4711;
	expect("an unknown request", dial(), &msg, EMU_CTL_BAD);
	msg = sound_hello();
	msg.hello.node = EMU_MAX_NICS;
	expect("a node too far", dial(), &msg, EMU_CTL_BAD);
	msg = sound_hello();
	msg.hello.rank = 12;
	msg.hello.ppn = msg.hello.nodes = 0;
	expect("no ranks per node", dial(), &msg, EMU_CTL_OK);
	must_live();
	return EXIT_SUCCESS;
}

/* ---- random messages ------------------------------------------------------------------ */

static void random_message(struct emu_ctl_msg *msg)
{
	scribble(msg, sizeof(*msg));
	if (any(4) == 0)
		return;
	msg->head = (struct emu_ctl_head){EMU_WIRE_MAGIC, EMU_WIRE_VERSION, (uint16_t)any(12)};
	if (any(2)) { /* small numbers reach further */
		memset(msg->room, 0, sizeof(msg->room));
		msg->room[any(32)] = (unsigned char)any(256);
		msg->port.mpq_capacity = msg->port.eq_capacity = msg->port.dq_capacity = 1u << any(24);
		msg->port.type = any(5);
		msg->port.ep_num = any(2) ? EMU_UNSET : any(70);
	}
}

/* Something to send along: pipes, memory that is not sealed, what the other end of this very talk is. */
static size_t some_fds(int *fds, int talk)
{
	size_t n = any(5), i;

	for (i = 0; i < n; i++)
		switch (any(3)) {
		case 0:
			fds[i] = memfd_create("hostile", MFD_ALLOW_SEALING);
			break;
		case 1:
			fds[i] = open("/dev/null", O_RDONLY);
			break;
		default:
			fds[i] = dup(talk);
		}
	return n;
}

static void take_replies(int fd)
{
	struct pollfd in = {.fd = fd, .events = POLLIN};
	struct emu_ctl_msg msg;

	while (poll(&in, 1, 0) == 1 && raw_receive(fd, &msg, NULL))
		;
}

static int fuzz(uint32_t count)
{
	unsigned char bytes[1024];
	struct emu_ctl_msg msg;
	int fd = -1, fds[8];
	uint32_t i, n;
	bool sent;

	for (i = 0; i < count; i++) {
		if (fd < 0) {
			fd = dial();
			msg = sound_hello();
			if (any(4))
				raw_call(fd, EMU_CTL_HELLO, &msg, -1, NULL);
		}
		n = (uint32_t)some_fds(fds, fd);
		if (any(3) == 0) {
			scribble(bytes, sizeof(bytes));
			sent = raw_send(fd, bytes, any(sizeof(bytes)), fds, n);
		} else {
			random_message(&msg);
			sent = raw_send(fd, &msg, sizeof(msg), fds, n);
		}
		while (n > 0)
			close(fds[--n]);
		take_replies(fd);
		if (!sent || any(20) == 0) {
			close(fd);
			fd = -1;
		}
		if (i % 100 == 0)
			must_live();
	}
	must_live();
	return EXIT_SUCCESS;
}

/* ---- many connections --------------------------------------------------------------------- */

static int crowd(uint32_t count)
{
	struct emu_ctl_msg list = {.head = {EMU_WIRE_MAGIC, EMU_WIRE_VERSION, EMU_CTL_PORT_LIST}}, msg;
	uint32_t i, j;
	int fd;

	for (i = 0; i < count; i++) {
		fd = dial(); /* stays open until the end */
		if (i % 8)
			continue;
		msg = sound_hello();
		raw_call(fd, EMU_CTL_HELLO, &msg, -1, NULL);
		fcntl(fd, F_SETFL, O_NONBLOCK);
		for (j = 0; j < 2000; j++) /* asks and asks, and takes no reply */
			if (!raw_send(fd, &list, sizeof(list), NULL, 0))
				break;
	}
	must_live();
	return EXIT_SUCCESS;
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void *map_all(int fd, size_t size)
{
	void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		die("a segment cannot be mapped");
	return base;
}

static void ring(struct emu_engine *engine, struct emu_nic *nic, uint32_t num)
{
	nic->dma_pending |= UINT64_C(1) << num;
	engine->bell++;
	emu_futex_wake(&engine->bell);
	sched_yield();
}

static void random_descriptor(struct emu_desc *desc, const struct emu_port *port)
{
	glex_ep_addr_t self = {.v = 0};

	scribble(desc, sizeof(*desc));
	self.ep_num = (uint16_t)port->ep_num;
	self.nic_id = port->nic_id;
	if (any(4))
		desc->op = any(5);
	if (any(2))
		desc->dst = self.v;
	if (any(2))
		desc->len = any(200);
	if (any(2))
		desc->rmt_key = port->key;
}

static int descriptors(void)
{
	struct emu_ctl_msg msg = sound_hello();
	int fd = dial(), fds[EMU_WIRE_FDS];
	struct emu_engine *engine;
	struct emu_port *port;
	struct emu_nic *nic;
	struct emu_desc *dq;
	uint32_t i, tail = 0, formats = 0;

	if (raw_call(fd, EMU_CTL_HELLO, &msg, -1, fds) != EMU_CTL_OK)
		die("HELLO was refused");
	engine = map_all(fds[0], 4096);
	nic = map_all(fds[1], sizeof(*nic));
	memset(&msg, 0, sizeof(msg));
	msg.port = (struct emu_ctl_port){
		.ep_num = EMU_UNSET, .type = 1, .key = 5, .dq_capacity = 64, .mpq_capacity = 64, .eq_capacity = 64};
	if (raw_call(fd, EMU_CTL_PORT_CREATE, &msg, -1, fds) != EMU_CTL_OK)
		die("no port");
	port = map_all(fds[0], (size_t)lseek(fds[0], 0, SEEK_END));
	dq = (struct emu_desc *)(void *)((unsigned char *)port + port->dq_slots);
	for (i = 0; i < 2000; i++) {
		while (tail - port->dq.head >= 64)
			ring(engine, nic, msg.port.ep_num);
		random_descriptor(&dq[tail % 64], port);
		port->dq.tail = ++tail;
		/* the errors are taken, so that the next ones find room */
		port->err.head = (uint32_t)port->err.tail;
	}
	for (i = 0; i < 256; i++) {
		const struct emu_err_slot *slot = (void *)((unsigned char *)port + port->err_slots);

		formats += slot[i].seq != 0 && slot[i].status == GLEX_ERR_STATUS_FORMAT;
	}
	must_live();
	/* more descriptors than there are: garbage for a billion, until the connection ends */
	port->dq.tail = tail + (1u << 30);
	ring(engine, nic, msg.port.ep_num);
	must_live();
	close(fd);
	must_live();
	printf("%u error requests of format\n", formats);
	return formats ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- a glexd that is none ----------------------------------------------------------------------- */

#define LATE_S 13

static void come_late(bool busy)
{
	time_t since = time(NULL);

	while (busy && time(NULL) < since + LATE_S)
		;
	if (!busy)
		sleep(LATE_S);
}

static void answer(int fd, const char *how)
{
	struct emu_ctl_msg msg;
	uint16_t code = !strcmp(how, "access") ? EMU_CTL_ACCESS : EMU_CTL_VERSION;

	if (!strcmp(how, "close") || !raw_receive(fd, &msg, NULL))
		return;
	if (!strcmp(how, "busy") || !strcmp(how, "asleep"))
		come_late(!strcmp(how, "busy"));
	memset(&msg, 0, sizeof(msg));
	msg.head = (struct emu_ctl_head){EMU_WIRE_MAGIC, EMU_WIRE_VERSION, code};
	if (!strcmp(how, "garbage"))
		scribble(&msg, sizeof(msg));
	raw_send(fd, &msg, !strcmp(how, "short") ? 5 : sizeof(msg), NULL, 0);
}

static int serve(const char *how)
{
	int listener = raw_listen(name), fd;

	if (listener < 0)
		die("cannot listen");
	printf("ready\n");
	fflush(stdout);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		answer(fd, how);
		close(fd);
	}
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *arg = argc > 2 ? argv[2] : "";

	raw_name(name, sizeof(name));
	seed = strtoull(arg, NULL, 10);
	if (!strcmp(what, "hello"))
		return hello();
	if (!strcmp(what, "fuzz") && argc > 3)
		return fuzz((uint32_t)strtoul(argv[3], NULL, 10));
	if (!strcmp(what, "crowd"))
		return crowd((uint32_t)seed);
	if (!strcmp(what, "descriptors"))
		return descriptors();
	if (!strcmp(what, "serve"))
		return serve(arg);
	fprintf(stderr, "usage: hostile hello | fuzz SEED N | crowd N | descriptors SEED | serve HOW\n");
	return 2;
}
