/* SPDX-License-Identifier: MIT */
/* ctf_field.c: see ctf_field.h. */
#include "formats/ctf/ctf_reader.h"

#include <inttypes.h>
#include <stdio.h>

#define KEY_BYTES 512u
#define NESTING_MAX 16u
#define ELEMENTS_MAX 4096u /* of an array; a trace with longer ones is read without the rest */

/* The key of the field that is being added, and how deep it is. */
struct key {
	char text[KEY_BYTES];
	size_t bytes;
	unsigned depth;
};

static void add(struct ky_trace *trace, struct key *key, const bt_field *field);

static bool is_a(const bt_field *field, bt_field_class_type type)
{
	return bt_field_class_type_is(bt_field_get_class_type(field), type);
}

/* Add the field under the key, which is longer by the part that snprintf() wrote behind it. */
static void add_part(struct ky_trace *trace, struct key *key, const bt_field *field, int part_bytes)
{
	const size_t had = key->bytes;
	if (part_bytes >= 0 && had + (size_t)part_bytes < KEY_BYTES && key->depth < NESTING_MAX) {
		key->bytes = had + (size_t)part_bytes;
		key->depth++;
		add(trace, key, field);
		key->depth--;
	} else {
		ky_problem(trace, "ctf_field_too_deep", KY_DATA_LOSS, KY_NO_PLACE,
			   "a field is nested too deep, or its name is too long: %.100s",
			   key->text);
	}
	key->bytes = had;
}

static void add_members(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	const bt_field_class *class = bt_field_borrow_class_const(field);
	const uint64_t count = bt_field_class_structure_get_member_count(class);
	for (uint64_t i = 0; i < count; i++) {
		const bt_field_class_structure_member *member =
			bt_field_class_structure_borrow_member_by_index_const(class, i);
		add_part(trace, key,
			 bt_field_structure_borrow_member_field_by_index_const(field, i),
			 snprintf(key->text + key->bytes, KEY_BYTES - key->bytes, "%s%s",
				  key->bytes ? "." : "",
				  bt_field_class_structure_member_get_name(member)));
	}
}

static void add_elements(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	const uint64_t length = bt_field_array_get_length(field);
	for (uint64_t i = 0; i < length && i < ELEMENTS_MAX; i++)
		add_part(trace, key, bt_field_array_borrow_element_field_by_index_const(field, i),
			 snprintf(key->text + key->bytes, KEY_BYTES - key->bytes, "[%" PRIu64 "]",
				  i));
	if (length > ELEMENTS_MAX)
		ky_problems(trace, "ctf_array_cut", KY_DATA_LOSS, KY_NO_PLACE, 1);
}

/* Return the first label of an enumeration's value, or NULL. */
static const char *label_of(const bt_field *field)
{
	bt_field_class_enumeration_mapping_label_array labels = NULL;
	uint64_t count = 0;
	bt_field_enumeration_get_mapping_labels_status status =
		BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_MEMORY_ERROR;
	if (is_a(field, BT_FIELD_CLASS_TYPE_UNSIGNED_ENUMERATION))
		status = bt_field_enumeration_unsigned_get_mapping_labels(field, &labels, &count);
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION))
		status = bt_field_enumeration_signed_get_mapping_labels(field, &labels, &count);
	return status == BT_FIELD_ENUMERATION_GET_MAPPING_LABELS_STATUS_OK && count ? labels[0]
										    : NULL;
}

static void add_integer(struct ky_trace *trace, uint32_t key, const bt_field *field)
{
	const char *label = is_a(field, BT_FIELD_CLASS_TYPE_ENUMERATION) ? label_of(field) : NULL;
	if (label)
		ky_arg_string(trace, key, ky_string_z(trace, label));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
		ky_arg_int(trace, key, bt_field_integer_signed_get_value(field));
	else
		ky_arg_uint(trace, key, bt_field_integer_unsigned_get_value(field));
}

static void add_scalar(struct ky_trace *trace, uint32_t key, const bt_field *field)
{
	if (is_a(field, BT_FIELD_CLASS_TYPE_BOOL))
		ky_arg_bool(trace, key, bt_field_bool_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_BIT_ARRAY))
		ky_arg_uint(trace, key, bt_field_bit_array_get_value_as_integer(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_INTEGER))
		add_integer(trace, key, field);
	else if (is_a(field, BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL))
		ky_arg_real(trace, key, (double)bt_field_real_single_precision_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL))
		ky_arg_real(trace, key, bt_field_real_double_precision_get_value(field));
	else if (is_a(field, BT_FIELD_CLASS_TYPE_STRING))
		ky_arg_string(trace, key,
			      ky_string(trace, bt_field_string_get_value(field),
					(size_t)bt_field_string_get_length(field)));
}

static void add(struct ky_trace *trace, struct key *key, const bt_field *field)
{
	if (is_a(field, BT_FIELD_CLASS_TYPE_STRUCTURE)) {
		add_members(trace, key, field);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_ARRAY)) {
		add_elements(trace, key, field);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_OPTION)) {
		const bt_field *content = bt_field_option_borrow_field_const(field);
		if (content)
			add_part(trace, key, content, 0);
	} else if (is_a(field, BT_FIELD_CLASS_TYPE_VARIANT)) {
		add_part(trace, key, bt_field_variant_borrow_selected_option_field_const(field), 0);
	} else {
		add_scalar(trace, ky_string(trace, key->text, key->bytes), field);
	}
}

void ky_ctf_args(struct ky_trace *trace, const bt_field *field)
{
	struct key key = {.bytes = 0};
	if (field)
		add(trace, &key, field);
}

const bt_field *ky_ctf_member(const bt_field *structure, const char *name)
{
	if (!structure || !is_a(structure, BT_FIELD_CLASS_TYPE_STRUCTURE))
		return NULL;
	return bt_field_structure_borrow_member_field_by_name_const(structure, name);
}

bool ky_ctf_integer(const bt_field *field, int64_t *value)
{
	if (!field || !is_a(field, BT_FIELD_CLASS_TYPE_INTEGER))
		return false;
	*value = is_a(field, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)
			 ? bt_field_integer_signed_get_value(field)
			 : (int64_t)bt_field_integer_unsigned_get_value(field);
	return true;
}

const char *ky_ctf_text(const bt_field *field, char *text, size_t bytes)
{
	if (!field)
		return NULL;
	if (is_a(field, BT_FIELD_CLASS_TYPE_STRING))
		return bt_field_string_get_value(field);
	if (!is_a(field, BT_FIELD_CLASS_TYPE_ARRAY))
		return NULL;
	const uint64_t length = bt_field_array_get_length(field);
	size_t used = 0;
	int64_t letter = 1;
	while (used < length && used + 1 < bytes && letter &&
	       ky_ctf_integer(bt_field_array_borrow_element_field_by_index_const(field, used),
			      &letter))
		text[used++] = (char)letter;
	text[used] = '\0';
	return text;
}
