/* SPDX-License-Identifier: MIT */
/*
 * pftrace_power.c: counters of batteries, power rails, energy consumers and the time spent in power states. Rails,
 * consumers and states have numbers, which any packet may describe. Track names are Perfetto's.
 */
#include "formats/pftrace/pftrace_reader.h"

#include <math.h>

/* ---- batteries ---- */

static void battery(struct ky_pf *pf, int64_t ts, struct ky_proto_view name, const char *counter,
		    double value)
{
	ky_pf_track_put_counter(
		pf, ts, "battery_counter",
		name.bytes ? ky_pf_track_name(pf, "batt.%.*s.%s", KY_PF_TEXT(name), counter)
			   : ky_pf_track_name(pf, "batt.%s", counter),
		value);
}

static double real_of(uint64_t bits)
{
	const uint32_t word = (uint32_t)bits;
	float value;
	memcpy(&value, &word, sizeof(value));
	return (double)value;
}

/* Products wrap as they do in Perfetto. */
static int64_t product(uint64_t one, uint64_t two)
{
	return (int64_t)(one * two);
}

/* Return whole units, as Perfetto does. */
static double quotient(int64_t of, int64_t by)
{
	const int64_t units = of / by;
	return (double)units;
}

void ky_pf_power_battery(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	ky_pf_ftrace_take_apart(message, &parts);
	const uint64_t *values = parts.values;
	const struct ky_proto_view name = parts.texts[KY_PF_BATTERY_COUNTERS_NAME];
	const int64_t voltage = (int64_t)values[KY_PF_BATTERY_COUNTERS_VOLTAGE_UV];
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_CHARGE_COUNTER_UAH))
		battery(pf, ts, name, "charge_uah",
			(double)(int64_t)values[KY_PF_BATTERY_COUNTERS_CHARGE_COUNTER_UAH]);
	else if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_ENERGY_COUNTER_UWH) && voltage > 0)
		battery(pf, ts, name, "charge_uah",
			quotient(
				product(values[KY_PF_BATTERY_COUNTERS_ENERGY_COUNTER_UWH], 1000000),
				voltage));
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_CAPACITY_PERCENT))
		battery(pf, ts, name, "capacity_pct",
			real_of(values[KY_PF_BATTERY_COUNTERS_CAPACITY_PERCENT]));
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_CURRENT_UA))
		battery(pf, ts, name, "current_ua",
			(double)(int64_t)values[KY_PF_BATTERY_COUNTERS_CURRENT_UA]);
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_CURRENT_AVG_UA))
		battery(pf, ts, name, "current.avg_ua",
			(double)(int64_t)values[KY_PF_BATTERY_COUNTERS_CURRENT_AVG_UA]);
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_VOLTAGE_UV))
		battery(pf, ts, name, "voltage_uv", (double)voltage);
	if (ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_CURRENT_UA) &&
	    ky_pf_has(&parts, KY_PF_BATTERY_COUNTERS_VOLTAGE_UV))
		battery(pf, ts, name, "power_mw",
			fabs(quotient(product(values[KY_PF_BATTERY_COUNTERS_CURRENT_UA],
					      values[KY_PF_BATTERY_COUNTERS_VOLTAGE_UV]),
				      1000000000)));
}

/* ---- rails ---- */

/* What well-known rails supply, by the end of their names. */
static const struct {
	const char *end;
	const char *name;
} rails[] = {
	{"M_VDD_CPUCL0", "cpu.little"},
	{"M_VDD_CPUCL0_M", "cpu.little.mem"},
	{"M_VDD_CPUCL1", "cpu.mid"},
	{"M_VDD_CPUCL1_M", "cpu.mid.mem"},
	{"M_VDD_CPUCL2", "cpu.big"},
	{"M_VDD_INT", "system.fabric"},
	{"M_VDD_TPU", "tpu"},
	{"VSYS_PWR_DISP", "display"},
	{"VSYS_PWR_DISPLAY", "display"},
	{"M_DISP", "ldo.main.a.display"},
	{"VSYS_PWR_MODEM", "modem"},
	{"M_VDD_MIF", "memory.interface"},
	{"VSYS_PWR_WLAN_BT", "wifi.bt"},
	{"VSYS_PWR_MMWAVE", "mmwave"},
	{"S_VDD_AOC_RET", "aoc.memory"},
	{"S_VDD_AOC", "aoc.logic"},
	{"S_VDDQ_MEM", "ddr.a"},
	{"S_VDD2L", "ddr.b"},
	{"S_VDD2L_MEM", "ddr.b"},
	{"S_VDD2H_MEM", "ddr.c"},
	{"S_VDD_G3D", "gpu"},
	{"S_VDD_G3D_L2", "gpu.l2"},
	{"S_GNSS_CORE", "gps"},
	{"VSYS_PWR_RFFE", "radio.frontend"},
	{"VSYS_PWR_CAMERA", "camera"},
	{"S_VDD_CAM", "multimedia"},
	{"S_UDFPS", "udfps"},
	{"S_PLL_MIPI_UFS", "ufs"},
	{"M_LLDO1", "ldo.main.a"},
	{"M_LLDO2", "ldo.main.b"},
	{"S_LLDO1", "ldo.sub"},
};

static uint32_t rail_name(struct ky_pf *pf, struct ky_proto_view raw)
{
	for (size_t i = 0; i < sizeof(rails) / sizeof(*rails); i++) {
		const size_t bytes = strlen(rails[i].end);
		if (raw.bytes >= bytes &&
		    memcmp(raw.data + raw.bytes - bytes, rails[i].end, bytes) == 0)
			return ky_pf_track_name(pf, "power.rails.%s", rails[i].name);
	}
	return ky_pf_track_name(pf, "power.%.*s_uws", KY_PF_TEXT(raw));
}

static uint64_t session_of(struct ky_proto_view message)
{
	return ky_proto_number(message, KY_PF_POWER_RAILS_SESSION_UUID);
}

void ky_pf_power_describe_rails(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	const uint64_t session = session_of(message);
	while (ky_pf_ftrace_next_parts(&in, KY_PF_POWER_RAILS_RAIL_DESCRIPTOR, &parts)) {
		uint64_t *name =
			ky_pf_read_known(pf, KY_PF_RAIL, session,
					 (uint32_t)parts.values[KY_PF_RAIL_DESCRIPTOR_INDEX], true);
		if (name)
			*name = rail_name(pf, parts.texts[KY_PF_RAIL_DESCRIPTOR_RAIL_NAME]);
	}
}

void ky_pf_power_rails(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	const uint64_t session = session_of(message);
	while (ky_pf_ftrace_next_parts(&in, KY_PF_POWER_RAILS_ENERGY_DATA, &parts)) {
		const uint64_t *name =
			ky_pf_read_known(pf, KY_PF_RAIL, session,
					 (uint32_t)parts.values[KY_PF_RAIL_ENERGY_INDEX], false);
		if (!name) {
			ky_problem(pf->trace, "power_rail_unknown_index", KY_DATA_LOSS, pf->at,
				   "energy of a rail without a descriptor");
			continue;
		}
		int64_t when = ts;
		if (ky_pf_has(&parts, KY_PF_RAIL_ENERGY_TIMESTAMP_MS))
			when = ky_pf_clock_time(
				pf, KY_CLOCK_BOOTTIME,
				product(parts.values[KY_PF_RAIL_ENERGY_TIMESTAMP_MS], 1000000));
		ky_put_counter(pf->trace, when,
			       ky_pf_track_of_counter(pf, "power_rails", (uint32_t)*name, session),
			       (double)parts.values[KY_PF_RAIL_ENERGY_ENERGY]);
	}
	if (in.bad)
		ky_pf_read_note_damage(pf, "power_rails");
}

/* ---- consumers of energy ---- */

void ky_pf_power_describe_energy(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_field descriptor;
	struct ky_pf_parts parts;
	if (!ky_proto_find(message, KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_DESCRIPTOR, &descriptor))
		return;
	struct ky_proto_in in = ky_proto_open(descriptor.view);
	while (ky_pf_ftrace_next_parts(&in, KY_PF_ENERGY_CONSUMERS_ENERGY_CONSUMERS, &parts)) {
		uint64_t *name =
			ky_pf_has(&parts, KY_PF_ENERGY_CONSUMER_ENERGY_CONSUMER_ID)
				? ky_pf_read_known(
					  pf, KY_PF_ENERGY, 0,
					  parts.values[KY_PF_ENERGY_CONSUMER_ENERGY_CONSUMER_ID],
					  true)
				: NULL;
		if (name)
			*name = ky_pf_string(pf, parts.texts[KY_PF_ENERGY_CONSUMER_NAME]);
	}
}

static void energy_of_users(struct ky_pf *pf, int64_t ts, struct ky_proto_view message,
			    uint64_t consumer, uint32_t name)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_ENERGY_BREAKDOWN_PER_UID_BREAKDOWN, &parts)) {
		if (!ky_pf_has(&parts, KY_PF_ENERGY_UID_UID) ||
		    !ky_pf_has(&parts, KY_PF_ENERGY_UID_ENERGY_UWS)) {
			ky_problem(pf->trace, "energy_uid_breakdown_missing_values", KY_DATA_LOSS,
				   pf->at, "energy of a user, without the user or the energy");
			continue;
		}
		const uint64_t id = consumer << 32 | (uint32_t)parts.values[KY_PF_ENERGY_UID_UID];
		ky_put_counter(pf->trace, ts,
			       ky_pf_track_of_counter(
				       pf, "android_energy_estimation_breakdown_per_uid", name, id),
			       (double)(int64_t)parts.values[KY_PF_ENERGY_UID_ENERGY_UWS]);
	}
}

void ky_pf_power_energy(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_pf_parts parts;
	struct ky_proto_field descriptor;
	if (ky_proto_find(message, KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_DESCRIPTOR, &descriptor))
		return;
	ky_pf_ftrace_take_apart(message, &parts);
	const uint64_t *name =
		ky_pf_has(&parts, KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_ID) &&
				ky_pf_has(&parts, KY_PF_ENERGY_BREAKDOWN_ENERGY_UWS)
			? ky_pf_read_known(pf, KY_PF_ENERGY, 0,
					   parts.values[KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_ID],
					   false)
			: NULL;
	if (!name) {
		ky_problem(pf->trace, "energy_breakdown_missing_values", KY_DATA_LOSS, pf->at,
			   "energy of a consumer without a descriptor");
		return;
	}
	const uint32_t string = (uint32_t)*name;
	ky_put_counter(
		pf->trace, ts,
		ky_pf_track_of_counter(pf, "android_energy_estimation_breakdown", string,
				       parts.values[KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_ID]),
		(double)(int64_t)parts.values[KY_PF_ENERGY_BREAKDOWN_ENERGY_UWS]);
	energy_of_users(pf, ts, message, parts.values[KY_PF_ENERGY_BREAKDOWN_ENERGY_CONSUMER_ID],
			string);
}

/* ---- states ---- */

void ky_pf_power_describe_entities(struct ky_pf *pf, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_ENTITY_STATE_RESIDENCY_POWER_ENTITY_STATE,
				       &parts)) {
		uint64_t *name = ky_pf_read_known(
			pf, KY_PF_ENTITY, parts.values[KY_PF_POWER_ENTITY_STATE_ENTITY_INDEX],
			parts.values[KY_PF_POWER_ENTITY_STATE_STATE_INDEX], true);
		if (name)
			*name = ky_pf_track_name(
				pf, "Entity residency: %.*s is %.*s",
				KY_PF_TEXT(parts.texts[KY_PF_POWER_ENTITY_STATE_ENTITY_NAME]),
				KY_PF_TEXT(parts.texts[KY_PF_POWER_ENTITY_STATE_STATE_NAME]));
	}
}

void ky_pf_power_residency(struct ky_pf *pf, int64_t ts, struct ky_proto_view message)
{
	struct ky_proto_in in = ky_proto_open(message);
	struct ky_pf_parts parts;
	while (ky_pf_ftrace_next_parts(&in, KY_PF_ENTITY_STATE_RESIDENCY_RESIDENCY, &parts)) {
		const uint64_t *name = ky_pf_read_known(
			pf, KY_PF_ENTITY, parts.values[KY_PF_STATE_RESIDENCY_ENTITY_INDEX],
			parts.values[KY_PF_STATE_RESIDENCY_STATE_INDEX], false);
		if (name)
			ky_pf_track_put_counter(
				pf, ts, "entity_state", (uint32_t)*name,
				(double)parts.values[KY_PF_STATE_RESIDENCY_TOTAL_TIME_IN_STATE_MS]);
		else
			ky_problem(pf->trace, "entity_state_residency_lookup_failed", KY_DATA_LOSS,
				   pf->at, "time in a state without a descriptor");
	}
	if (in.bad)
		ky_pf_read_note_damage(pf, "entity_state_residency");
}
