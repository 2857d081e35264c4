/* SPDX-License-Identifier: MIT */
/* pftrace_stats.c: counters that the tracing service reads from /proc and /sys. Names and units are Perfetto's. */
#include "formats/pftrace/pftrace_reader.h"

#include <stdio.h>

/* clang-format off */
/* /proc/meminfo and /proc/vmstat by Perfetto's numbers. */
static const char *const meminfo[] = {
	"MemUnspecified", "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached",
	"SwapCached", "Active", "Inactive", "Active(anon)", "Inactive(anon)", "Active(file)",
	"Inactive(file)", "Unevictable", "Mlocked", "SwapTotal", "SwapFree", "Dirty", "Writeback",
	"AnonPages", "Mapped", "Shmem", "Slab", "SReclaimable", "SUnreclaim", "KernelStack",
	"PageTables", "CommitLimit", "Committed_AS", "VmallocTotal", "VmallocUsed",
	"VmallocChunk", "CmaTotal", "CmaFree", "Gpu", "Zram", "Misc", "ION_heap", "ION_heap_pool",
};
static const char *const vmstat[] = {
	"VmstatUnspecified", "nr_free_pages", "nr_alloc_batch", "nr_inactive_anon",
	"nr_active_anon", "nr_inactive_file", "nr_active_file", "nr_unevictable", "nr_mlock",
	"nr_anon_pages", "nr_mapped", "nr_file_pages", "nr_dirty", "nr_writeback",
	"nr_slab_reclaimable", "nr_slab_unreclaimable", "nr_page_table_pages", "nr_kernel_stack",
	"nr_overhead", "nr_unstable", "nr_bounce", "nr_vmscan_write",
	"nr_vmscan_immediate_reclaim", "nr_writeback_temp", "nr_isolated_anon",
	"nr_isolated_file", "nr_shmem", "nr_dirtied", "nr_written", "nr_pages_scanned",
	"workingset_refault", "workingset_activate", "workingset_nodereclaim",
	"nr_anon_transparent_hugepages", "nr_free_cma", "nr_swapcache", "nr_dirty_threshold",
	"nr_dirty_background_threshold", "pgpgin", "pgpgout", "pgpgoutclean", "pswpin", "pswpout",
	"pgalloc_dma", "pgalloc_normal", "pgalloc_movable", "pgfree", "pgactivate",
	"pgdeactivate", "pgfault", "pgmajfault", "pgrefill_dma", "pgrefill_normal",
	"pgrefill_movable", "pgsteal_kswapd_dma", "pgsteal_kswapd_normal",
	"pgsteal_kswapd_movable", "pgsteal_direct_dma", "pgsteal_direct_normal",
	"pgsteal_direct_movable", "pgscan_kswapd_dma", "pgscan_kswapd_normal",
	"pgscan_kswapd_movable", "pgscan_direct_dma", "pgscan_direct_normal",
	"pgscan_direct_movable", "pgscan_direct_throttle", "pginodesteal", "slabs_scanned",
	"kswapd_inodesteal", "kswapd_low_wmark_hit_quickly", "kswapd_high_wmark_hit_quickly",
	"pageoutrun", "allocstall", "pgrotated", "drop_pagecache", "drop_slab",
	"pgmigrate_success", "pgmigrate_fail", "compact_migrate_scanned", "compact_free_scanned",
	"compact_isolated", "compact_stall", "compact_fail", "compact_success",
	"compact_daemon_wake", "unevictable_pgs_culled", "unevictable_pgs_scanned",
	"unevictable_pgs_rescued", "unevictable_pgs_mlocked", "unevictable_pgs_munlocked",
	"unevictable_pgs_cleared", "unevictable_pgs_stranded", "nr_zspages", "nr_ion_heap",
	"nr_gpu_heap", "allocstall_dma", "allocstall_movable", "allocstall_normal",
	"compact_daemon_free_scanned", "compact_daemon_migrate_scanned", "nr_fastrpc",
	"nr_indirectly_reclaimable", "nr_ion_heap_pool", "nr_kernel_misc_reclaimable",
	"nr_shadow_call_stack_bytes", "nr_shmem_hugepages", "nr_shmem_pmdmapped",
	"nr_unreclaimable_pages", "nr_zone_active_anon", "nr_zone_active_file",
	"nr_zone_inactive_anon", "nr_zone_inactive_file", "nr_zone_unevictable",
	"nr_zone_write_pending", "oom_kill", "pglazyfree", "pglazyfreed", "pgrefill",
	"pgscan_direct", "pgscan_kswapd", "pgskip_dma", "pgskip_movable", "pgskip_normal",
	"pgsteal_direct", "pgsteal_kswapd", "swap_ra", "swap_ra_hit", "workingset_restore",
	"allocstall_device", "allocstall_dma32", "balloon_deflate", "balloon_inflate",
	"balloon_migrate", "cma_alloc_fail", "cma_alloc_success", "nr_file_hugepages",
	"nr_file_pmdmapped", "nr_foll_pin_acquired", "nr_foll_pin_released",
	"nr_sec_page_table_pages", "nr_shadow_call_stack", "nr_swapcached",
	"nr_throttled_written", "pgalloc_device", "pgalloc_dma32", "pgdemote_direct",
	"pgdemote_kswapd", "pgreuse", "pgscan_anon", "pgscan_file", "pgskip_device",
	"pgskip_dma32", "pgsteal_anon", "pgsteal_file", "thp_collapse_alloc",
	"thp_collapse_alloc_failed", "thp_deferred_split_page", "thp_fault_alloc",
	"thp_fault_fallback", "thp_fault_fallback_charge", "thp_file_alloc", "thp_file_fallback",
	"thp_file_fallback_charge", "thp_file_mapped", "thp_migration_fail",
	"thp_migration_split", "thp_migration_success", "thp_scan_exceed_none_pte",
	"thp_scan_exceed_share_pte", "thp_scan_exceed_swap_pte", "thp_split_page",
	"thp_split_page_failed", "thp_split_pmd", "thp_swpout", "thp_swpout_fallback",
	"thp_zero_page_alloc", "thp_zero_page_alloc_failed", "vma_lock_abort", "vma_lock_miss",
	"vma_lock_retry", "vma_lock_success", "workingset_activate_anon",
	"workingset_activate_file", "workingset_nodes", "workingset_refault_anon",
	"workingset_refault_file", "workingset_restore_anon", "workingset_restore_file",
};
/* clang-format on */

static void put_on(struct ky_pf *pf, int64_t ts, enum ky_track_kind kind, uint32_t owner,
		   const char *name, double value)
{
	ky_put_counter(pf->trace, ts,
		       ky_track_counter(pf->trace, kind, owner, ky_string_z(pf->trace, name)),
		       value);
}

static void put(struct ky_pf *pf, int64_t ts, const char *name, double value)
{
	put_on(pf, ts, KY_TRACK_COUNTER, KY_NONE, name, value);
}

/* Put a number of the message as a counter with a text of the message in its name. */
static void put_named(struct ky_pf *pf, int64_t ts, const char *prefix,
		      struct ky_proto_view message, uint32_t text_field, uint32_t value_field)
{
	struct ky_proto_field text, value;
	char name[256];
	if (!ky_proto_find(message, text_field, &text) ||
	    !ky_proto_find(message, value_field, &value))
		return;
	snprintf(name, sizeof(name), "%s%.*s", prefix, (int)(text.view.bytes & 0xff),
		 text.view.data ? (const char *)text.view.data : "");
	put(pf, ts, name, (double)value.value);
}

static void put_keyed(struct ky_pf *pf, int64_t ts, struct ky_proto_view message,
		      const char *const *names, size_t count, double scale)
{
	struct ky_proto_field key;
	if (!ky_proto_find(message, KY_PF_SYS_STATS_MEMINFO_VALUE_KEY, &key))
		return;
	const double number = (double)ky_proto_number(message, KY_PF_SYS_STATS_MEMINFO_VALUE_VALUE);
	if (key.value < count && names[key.value])
		put(pf, ts, names[key.value], number * scale);
	else
		ky_problem(pf->trace, "sys_stats_unknown_keys", KY_INFO, pf->at,
			   "a system counter with an unknown key");
}

static void cpu_times(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	static const char *const names[] = {"user_ns",    "user_nice_ns", "system_mode_ns",
					    "idle_ns",    "io_wait_ns",   "irq_ns",
					    "softirq_ns", "steal_ns"};
	struct ky_proto_field cpu;
	char name[40];
	if (!ky_proto_find(message, KY_PF_SYS_STATS_CPU_TIMES_CPU_ID, &cpu))
		return;
	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(name, sizeof(name), "cpu.times.%s", names[i]);
		put_on(pf, ts, KY_TRACK_CPU_COUNTER, (uint32_t)cpu.value, name,
		       (double)ky_proto_number(message, KY_PF_SYS_STATS_CPU_TIMES_USER_NS + i));
	}
}

static void interrupts(struct ky_pf *pf, int64_t ts, const char *what, struct ky_proto_view message)
{
	char name[40];
	snprintf(name, sizeof(name), "%s (id: %u)", what,
		 (unsigned)ky_proto_number(message, KY_PF_SYS_STATS_INTERRUPT_COUNT_IRQ));
	put(pf, ts, name, (double)ky_proto_number(message, KY_PF_SYS_STATS_INTERRUPT_COUNT_COUNT));
}

static void pressure(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	static const char *const names[] = {NULL,          "psi.cpu.some", "psi.cpu.full",
					    "psi.io.some", "psi.io.full",  "psi.mem.some",
					    "psi.mem.full"};
	struct ky_proto_field resource, total;
	if (ky_proto_find(message, KY_PF_SYS_STATS_PSI_SAMPLE_RESOURCE, &resource) &&
	    resource.value > 0 && resource.value < sizeof(names) / sizeof(*names) &&
	    ky_proto_find(message, KY_PF_SYS_STATS_PSI_SAMPLE_TOTAL_NS, &total))
		put(pf, ts, names[resource.value], (double)total.value);
}

static void idle_states(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	char prefix[32];
	snprintf(prefix, sizeof(prefix), "cpuidle%u.",
		 (unsigned)ky_proto_number(message, KY_PF_SYS_STATS_CPU_IDLE_STATE_CPU_ID));
	KY_PROTO_EACH(field, message)
		if (field.id == KY_PF_SYS_STATS_CPU_IDLE_STATE_CPUIDLE_STATE_ENTRY)
			put_named(pf, ts, prefix, field.view,
				  KY_PF_SYS_STATS_CPU_IDLE_STATE_ENTRY_STATE,
				  KY_PF_SYS_STATS_CPU_IDLE_STATE_ENTRY_DURATION_US);
}

static void frequencies(struct ky_pf *pf, int64_t ts, const struct ky_proto_field *field,
			uint32_t *cpu)
{
	struct ky_proto_items items = ky_proto_items(field, false);
	uint64_t value;
	while (ky_proto_item(&items, &value)) {
		if (field->id == KY_PF_SYS_STATS_CPUFREQ_KHZ)
			put_on(pf, ts, KY_TRACK_CPU_COUNTER, (*cpu)++, "cpufreq", (double)value);
		else
			put(pf, ts, "gpufreq", (double)value);
	}
}

static void put_disk(struct ky_pf *pf, int64_t ts, struct ky_proto_view device, const char *what,
		     const char *kind, double value)
{
	ky_pf_track_put_counter(
		pf, ts, "diskstat",
		ky_pf_track_name(pf, "diskstat.[%.*s].%s%s", KY_PF_TEXT(device), what, kind),
		value);
}

/* Put what a disk did since the last packet: megabytes and throughput. */
static void disk(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	static const struct {
		const char *name;
		uint8_t sectors, time;
	} rates[] = {{"read", KY_PF_SYS_STATS_DISK_STAT_READ_SECTORS,
		      KY_PF_SYS_STATS_DISK_STAT_READ_TIME_MS},
		     {"write", KY_PF_SYS_STATS_DISK_STAT_WRITE_SECTORS,
		      KY_PF_SYS_STATS_DISK_STAT_WRITE_TIME_MS},
		     {"discard", KY_PF_SYS_STATS_DISK_STAT_DISCARD_SECTORS,
		      KY_PF_SYS_STATS_DISK_STAT_DISCARD_TIME_MS}};
	struct ky_pf_parts now;
	ky_pf_ftrace_take_apart(message, &now);
	const struct ky_proto_view name = now.texts[KY_PF_SYS_STATS_DISK_STAT_DEVICE_NAME];
	const uint32_t device = ky_pf_string(pf, name);
	uint64_t *row =
		KY_PF_GROW(pf, disks) ? ky_pf_read_known(pf, KY_PF_DISK, 0, device, true) : NULL;
	if (!row)
		return;
	const bool first = !*row;
	if (first) {
		pf->disks[pf->disks_count] = (struct ky_pf_disk){0};
		*row = ++pf->disks_count;
	}
	uint64_t *last = pf->disks[*row - 1].totals;
	int64_t since[KY_PF_DISK_FIELDS];
	for (uint32_t i = 0; i < KY_PF_DISK_FIELDS; i++) {
		since[i] = (int64_t)(now.values[i] - last[i]);
		last[i] = now.values[i];
	}
	if (first)
		return;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		const double megabytes = (double)since[rates[i].sectors] / 2048.0;
		const double ms = (double)since[rates[i].time];
		put_disk(pf, ts, name, rates[i].name, "_amount", megabytes);
		put_disk(pf, ts, name, rates[i].name, "_throughput",
			 ms == 0 ? 0 : megabytes * 1000.0 / ms);
	}
	put_disk(pf, ts, name, "flush", "_amount",
		 (double)since[KY_PF_SYS_STATS_DISK_STAT_FLUSH_COUNT]);
	put_disk(pf, ts, name, "flush", "_time",
		 (double)since[KY_PF_SYS_STATS_DISK_STAT_FLUSH_TIME_MS]);
}

static void messages(struct ky_pf *pf, int64_t ts, const struct ky_proto_field *field)
{
	switch (field->id) {
	case KY_PF_SYS_STATS_MEMINFO:
		put_keyed(pf, ts, field->view, meminfo, sizeof(meminfo) / sizeof(*meminfo), 1024);
		break;
	case KY_PF_SYS_STATS_VMSTAT:
		put_keyed(pf, ts, field->view, vmstat, sizeof(vmstat) / sizeof(*vmstat), 1);
		break;
	case KY_PF_SYS_STATS_CPU_STAT:
		cpu_times(pf, ts, field->view);
		break;
	case KY_PF_SYS_STATS_NUM_IRQ:
		interrupts(pf, ts, "num_irq", field->view);
		break;
	case KY_PF_SYS_STATS_NUM_SOFTIRQ:
		interrupts(pf, ts, "num_softirq", field->view);
		break;
	case KY_PF_SYS_STATS_DEVFREQ:
		put_named(pf, ts, "", field->view, KY_PF_SYS_STATS_DEVFREQ_VALUE_KEY,
			  KY_PF_SYS_STATS_DEVFREQ_VALUE_VALUE);
		break;
	case KY_PF_SYS_STATS_DISK_STAT:
		disk(pf, ts, field->view);
		break;
	case KY_PF_SYS_STATS_PSI:
		pressure(pf, ts, field->view);
		break;
	case KY_PF_SYS_STATS_THERMAL_ZONE:
		put_named(pf, ts, "", field->view, KY_PF_SYS_STATS_THERMAL_ZONE_TYPE,
			  KY_PF_SYS_STATS_THERMAL_ZONE_TEMP);
		break;
	case KY_PF_SYS_STATS_CPUIDLE_STATE:
		idle_states(pf, ts, field->view);
		break;
	default:
		break;
	}
}

void ky_pf_stats_put(struct ky_pf *pf, int64_t ts, struct ky_proto_view stats)
{
	static const char *const totals[] = {
		[KY_PF_SYS_STATS_NUM_FORKS] = "num_forks",
		[KY_PF_SYS_STATS_NUM_IRQ_TOTAL] = "num_irq_total",
		[KY_PF_SYS_STATS_NUM_SOFTIRQ_TOTAL] = "num_softirq_total",
	};
	uint32_t cpu = 0;
	KY_PF_EACH(pf, field, stats, "sys_stats") {
		if (field.id < sizeof(totals) / sizeof(*totals) && totals[field.id])
			put(pf, ts, totals[field.id], (double)field.value);
		else if (field.id == KY_PF_SYS_STATS_CPUFREQ_KHZ ||
			 field.id == KY_PF_SYS_STATS_GPUFREQ_MHZ)
			frequencies(pf, ts, &field, &cpu);
		else if (field.wire == KY_PROTO_BYTES)
			messages(pf, ts, &field);
	}
}
