/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_info_device.c - glex_info -d.
 *
 * First as an observer of the glexd that runs, who takes no part in what it
 * shows; then by opening the device like any program, which proves that it can
 * be used and tells the limits.
 *
 * The environment is read twice in this process, by the part of the library
 * that is linked in for the observer and by the library itself.
 */
#include "config.h"

#include "glex_info.h"

#include <glex.h>
#include <glex_ext.h>

#include "backend/nic/ctl.h"
#include "cfg/cfg.h"
#include "emulator/abi/shm_layout.h"
#include "emulator/abi/wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- what glexd says ----------------------------------------------------- */

/* In the order of struct emu_port_counters. */
static const char *const counters[] = {
	"tx_mp", "tx_imm_put", "tx_put",   "tx_get", "tx_bytes",  "tx_busy",
	"rx_mp", "rx_event",   "tx_error", "by_map", "by_attach", "sleeps",
};

#define COUNTERS (sizeof(counters) / sizeof(counters[0]))

static_assert(sizeof(((struct emu_ctl_list *)0)->counter) == COUNTERS * sizeof(uint64_t), "each counter has its name");

static const char *type_name(uint32_t type)
{
	static const char *const names[] = {"FAST", "NORMAL", "EMULATE", "MANAGEMENT"};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

static json_t *queue_object(uint32_t capacity, uint32_t used)
{
	json_t *queue = json_object();

	info_set(queue, "capacity", json_integer(capacity));
	info_set(queue, "used", json_integer(used));
	return queue;
}

static json_t *lossy_queue_object(uint32_t capacity, uint32_t used, uint32_t lost)
{
	json_t *queue = queue_object(capacity, used);

	info_set(queue, "lost", json_integer(lost));
	return queue;
}

static json_t *port_object(const struct emu_ctl_list *list)
{
	json_t *port = json_object(), *counted = json_object();

	for (size_t i = 0; i < COUNTERS; i++)
		info_set(counted, counters[i], json_integer((json_int_t)list->counter[i]));
	info_set(port, "nic_id", json_integer(list->nic_id));
	info_set(port, "ep_num", json_integer(list->ep_num));
	info_set(port, "type", json_string(type_name(list->type)));
	info_set(port, "pid", json_integer(list->pid));
	info_set(port, "dq", queue_object(list->dq_capacity, list->dq_used));
	info_set(port, "mpq", lossy_queue_object(list->mpq_capacity, list->mpq_used, list->mpq_lost));
	info_set(port, "eq", lossy_queue_object(list->eq_capacity, list->eq_used, list->eq_lost));
	info_set(port, "intq", lossy_queue_object(list->intq_capacity, list->intq_used, list->intq_lost));
	info_set(port, "epq", lossy_queue_object(list->epq_capacity, list->epq_used, list->epq_lost));
	info_set(port, "regions_of_nic", json_integer(list->regions));
	info_set(port, "counters", counted);
	return port;
}

/* All ports there are; "error" besides if glexd went away in the middle. */
static void list_ports(struct nic_ctl *ctl, json_t *glexd)
{
	json_t *ports = json_array();
	struct emu_ctl_msg msg;
	uint32_t position = 0;
	int status;

	do {
		memset(&msg, 0, sizeof(msg));
		msg.list.position = position++;
		status = nic_ctl_call(ctl, EMU_CTL_PORT_LIST, &msg, -1, NULL);
		if (status == EMU_CTL_OK)
			json_array_append_new(ports, port_object(&msg.list));
	} while (status == EMU_CTL_OK);
	info_set(glexd, "ports", ports);
	if (status != EMU_CTL_ABSENT)
		info_set(glexd, "error", json_string("glexd stopped answering"));
}

/* In the order of struct emu_nic_counters. */
static const char *const nic_counters[] = {
	"passed",	  "refused_handle", "refused_endpoint", "refused_bounds", "refused_key",
	"refused_access", "att_hit",	    "att_miss",		"att_evicted",	  "adopted_pages",
	"huge_units",	  "not_huge_units", "attached_pages",
};

#define NIC_COUNTERS (sizeof(nic_counters) / sizeof(nic_counters[0]))

static_assert(sizeof(((struct emu_ctl_nic *)0)->counter) == NIC_COUNTERS * sizeof(uint64_t), "each has its name");

/* Regions by what they are made of, and so by how they are reached; in the order of enum emu_kind. */
static const char *const kinds[] = {"attach", "alloc", "shared", "adopted"};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static_assert(KINDS == EMU_KINDS, "each has its name");

static json_t *nic_object(const struct emu_ctl_nic *list)
{
	json_t *nic = json_object(), *counted = json_object(), *by = json_object();

	for (size_t i = 0; i < KINDS; i++)
		info_set(by, kinds[i], json_integer(list->kind[i]));

	for (size_t i = 0; i < NIC_COUNTERS; i++)
		info_set(counted, nic_counters[i], json_integer((json_int_t)list->counter[i]));
	info_set(nic, "nic_id", json_integer(list->nic_id));
	info_set(nic, "regions", json_integer(list->regions));
	info_set(nic, "regions_by_way", by);
	info_set(nic, "atc_modelled", json_boolean(list->modelled));
	info_set(nic, "counters", counted);
	return nic;
}

static void list_nics(struct nic_ctl *ctl, json_t *glexd)
{
	json_t *nics = json_array();
	struct emu_ctl_msg msg;
	uint32_t position = 0;

	for (;;) {
		memset(&msg, 0, sizeof(msg));
		msg.nic.position = position++;
		if (nic_ctl_call(ctl, EMU_CTL_NIC_LIST, &msg, -1, NULL) != EMU_CTL_OK)
			break;
		json_array_append_new(nics, nic_object(&msg.nic));
	}
	info_set(glexd, "nics", nics);
}

/* NULL: there is one and it will not have us; the library said why. */
static json_t *observe(void)
{
	int fds[EMU_WIRE_FDS] = {-1, -1};
	struct emu_ctl_hello_reply welcome;
	json_t *glexd = json_object();
	struct nic_ctl ctl;
	glex_ret_t ret;

	ret = nic_ctl_open(&ctl, false, &welcome, fds);
	if (ret != GLEX_SUCCESS && ret != GLEX_NO_MP) {
		json_decref(glexd);
		return NULL;
	}
	info_set(glexd, "socket", json_string(ctl.name));
	info_set(glexd, "running", json_boolean(ret == GLEX_SUCCESS));
	if (ret == GLEX_SUCCESS) {
		info_set(glexd, "pid", json_integer(welcome.glexd_pid));
		list_nics(&ctl, glexd);
		list_ports(&ctl, glexd);
		nic_ctl_close(&ctl);
	}
	return glexd;
}

/* ---- what the device says ------------------------------------------------ */

/*
 * What is in force already is all that the library may find: so it does not warn
 * of the rest once more.  A process without a node of its own sits on node 0,
 * lest it shift the nodes of those that come after it.
 */
static void settle_environment(void)
{
	for (const struct glexi_cfg_row *row = glexi_cfg_table; row->name; row++) {
		if (glexi_cfg_source(row) == GLEXI_CFG_FROM_DEFAULT)
			unsetenv(row->name);
	}
	setenv("GLEX_WARN_UNUSED", "n", 1);
	setenv("GLEX_NODE", "0", 0);
}

/* How the registration cache learns that memory goes; asked of one, for which an endpoint is needed. */
static const char *memory_monitor(glex_device_handle_t dev)
{
	static const char *const names[] = {
		[GLEX_MEM_MONITOR_NONE] = "none: shared memory of the program is registered for each use",
		[GLEX_MEM_MONITOR_HOOKS] = "libglex-memhooks.so",
		[GLEX_MEM_MONITOR_USERFAULTFD] = "userfaultfd, when something needs it",
		[GLEX_MEM_MONITOR_EXPLICIT] = "explicit: the program tells",
	};
	struct glex_ep_attr attr = {.type = GLEX_EP_TYPE_EMULATE, .num = GLEX_ANY_EP_NUM, .key = 1};
	struct glex_rcache_stats stats = {.monitor = GLEX_MEM_MONITOR_NONE};
	const char *name = "not known: no endpoint could be created";
	glex_rcache_handle_t rc;
	glex_ep_handle_t ep;

	if (glex_create_ep(dev, &attr, &ep) != GLEX_SUCCESS)
		return name;
	if (glex_rcache_create(ep, NULL, &rc) == GLEX_SUCCESS) {
		if (glex_rcache_query(rc, &stats) == GLEX_SUCCESS)
			name = names[stats.monitor];
		glex_rcache_destroy(rc);
	}
	glex_destroy_ep(ep);
	return name;
}

static json_t *limits(const char **monitor_p)
{
	struct glex_device_attr attr;
	glex_device_handle_t dev;
	json_t *object;
	glex_ret_t ret;

	ret = glex_open_device(0, &dev);
	if (ret != GLEX_SUCCESS) {
		fprintf(stderr, "glex_info: the device cannot be used: %s\n", glex_error_str(ret));
		return NULL;
	}
	glex_query_device(dev, &attr);
	*monitor_p = memory_monitor(dev);
	glex_close_device(dev);
	object = json_object();
#define LIMIT(member) info_set(object, #member, json_integer(attr.member))
	LIMIT(nic_id);
	LIMIT(max_fast_ep_num);
	LIMIT(max_ep_num);
	LIMIT(max_emulate_ep_num);
	LIMIT(mmt_units);
	LIMIT(att_units);
	LIMIT(max_imm_mp_data_len);
	LIMIT(max_mp_data_len);
	LIMIT(max_imm_rdma_data_len);
	LIMIT(max_rdma_data_len);
	LIMIT(def_ep_dq_capacity);
	LIMIT(def_ep_eq_capacity);
	LIMIT(def_ep_mpq_capacity);
	LIMIT(max_ep_dq_capacity);
	LIMIT(max_ep_eq_capacity);
	LIMIT(max_ep_mpq_capacity);
	LIMIT(max_ep_hc_eq_capacity);
	LIMIT(max_ep_hc_mpq_capacity);
#undef LIMIT
	return object;
}

json_t *info_device(void)
{
	json_t *device = json_object(), *glexd = observe(), *attr = NULL;
	const char *monitor = "";

	if (glexd) {
		info_set(device, "glexd", glexd);
		settle_environment();
		attr = limits(&monitor);
	} else {
		fprintf(stderr, "glex_info: the device cannot be used: glexd refused, see above\n");
	}
	if (!attr) {
		json_decref(device);
		return NULL;
	}
	info_set(device, "limits", attr);
	info_set(device, "memory_monitor", json_string(monitor));
	return device;
}

/* ---- and how it is shown ------------------------------------------------- */

static json_int_t number(const json_t *object, const char *member)
{
	return json_integer_value(json_object_get(object, member));
}

static void print_queue(const json_t *port, const char *name, FILE *out)
{
	const json_t *queue = json_object_get(port, name);

	fprintf(out, "  %s %" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT, name, number(queue, "used"),
		number(queue, "capacity"));
	if (number(queue, "lost"))
		fprintf(out, " (%" JSON_INTEGER_FORMAT " lost)", number(queue, "lost"));
}

static bool was_used(const json_t *port, const char *name)
{
	const json_t *queue = json_object_get(port, name);

	return number(queue, "used") || number(queue, "lost");
}

/* Two lines: what it is and how full, and the counters that are not 0. */
static void print_port(const json_t *port, FILE *out)
{
	json_t *counted = json_object_get(port, "counters");
	int shown = 0;

	fprintf(out,
		"port %" JSON_INTEGER_FORMAT ":%" JSON_INTEGER_FORMAT "  %s  pid %" JSON_INTEGER_FORMAT
		"  regions of this NIC %" JSON_INTEGER_FORMAT,
		number(port, "nic_id"), number(port, "ep_num"), info_text(port, "type"), number(port, "pid"),
		number(port, "regions_of_nic"));
	if (number(json_object_get(port, "dq"), "capacity")) /* a FAST port has none */
		print_queue(port, "dq", out);
	print_queue(port, "mpq", out);
	print_queue(port, "eq", out);
	if (was_used(port, "intq"))
		print_queue(port, "intq", out);
	if (was_used(port, "epq"))
		print_queue(port, "epq", out);
	fprintf(out, "\n    ");
	for (size_t i = 0; i < COUNTERS; i++) {
		if (number(counted, counters[i]))
			fprintf(out, "%s%s %" JSON_INTEGER_FORMAT, shown++ ? "  " : "", counters[i],
				number(counted, counters[i]));
	}
	fprintf(out, "%s\n", shown ? "" : "no traffic");
}

/* A line: regions, and the counters that are not 0. */
static void print_nic(const json_t *nic, FILE *out)
{
	json_t *counted = json_object_get(nic, "counters"), *by = json_object_get(nic, "regions_by_way");

	fprintf(out, "nic %" JSON_INTEGER_FORMAT "  regions %" JSON_INTEGER_FORMAT "/%u", number(nic, "nic_id"),
		number(nic, "regions"), EMU_MMT_UNITS);
	for (size_t i = 0; i < KINDS; i++) {
		if (number(by, kinds[i]))
			fprintf(out, "  %s %" JSON_INTEGER_FORMAT, kinds[i], number(by, kinds[i]));
	}
	for (size_t i = 0; i < NIC_COUNTERS; i++) {
		if (number(counted, nic_counters[i]))
			fprintf(out, "  %s %" JSON_INTEGER_FORMAT, nic_counters[i], number(counted, nic_counters[i]));
	}
	fprintf(out, "%s\n", json_is_true(json_object_get(nic, "atc_modelled")) ? "" : "  (GLEX_MODEL_ATC is off)");
}

static void print_glexd(const json_t *glexd, FILE *out)
{
	const json_t *ports = json_object_get(glexd, "ports"), *port;
	const json_t *nics = json_object_get(glexd, "nics"), *nic;
	size_t i;

	if (!json_is_true(json_object_get(glexd, "running"))) {
		fprintf(out, "glexd   none runs at %s; one was started to ask for the limits\n",
			info_text(glexd, "socket"));
		return;
	}
	fprintf(out, "glexd   pid %" JSON_INTEGER_FORMAT " at %s, %zu ports in use\n", number(glexd, "pid"),
		info_text(glexd, "socket"), json_array_size(ports));
	json_array_foreach(nics, i, nic) print_nic(nic, out);
	json_array_foreach(ports, i, port) print_port(port, out);
	if (*info_text(glexd, "error"))
		fprintf(out, "%s\n", info_text(glexd, "error"));
}

void info_print_device(const json_t *section, FILE *out)
{
	json_t *attr = json_object_get(section, "limits"), *value;
	const char *name;

	fprintf(out, "device  0\n");
	json_object_foreach(attr, name, value)
		fprintf(out, "  %-24s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
	fprintf(out, "  %-24s %s\n", "memory_monitor", info_text(section, "memory_monitor"));
	print_glexd(json_object_get(section, "glexd"), out);
}
