# SPDX-License-Identifier: MIT
# ftrace_events.awk: make ftrace_events.h of ftrace_events.txt, at build time: the numbers of events and of their fields
# by name (KY_PF_FTRACE_EVENT_SCHED_SWITCH, KY_PF_SCHED_SWITCH_PREV_PID), and the names by number, with
# a letter for the type of each field (i a number, s a string, x what is not written), as an X-macro.
BEGIN {
	print "/* Made of ftrace_events.txt by ftrace_events.awk. */"
	print "#ifndef KY_FORMATS_PFTRACE_FTRACE_EVENTS_H"
	print "#define KY_FORMATS_PFTRACE_FTRACE_EVENTS_H"
	print "enum {"
}
/^#/ { next }
{
	name = toupper($2)
	last = $1
	types = ""
	count = split($3, fields, ",")
	for (i = 1; i <= count; i++) {
		type = "i"
		if (split(fields[i], parts, ":") == 2)
			type = parts[2]
		fields[i] = parts[1]
		types = types (fields[i] == "" ? "x" : type)
	}
	gsub(/:[sx]/, "", $3)
	rows = rows "\tX(" $1 "u, \"" $2 "\", \"" $3 "\", \"" types "\") \\\n"
	printf "\tKY_PF_FTRACE_EVENT_%s = %s,", name, $1
	for (i = 1; i <= count; i++)
		if (fields[i] != "")
			printf " KY_PF_%s_%s = %d,", name, toupper(fields[i]), i
	print ""
}
END {
	print "\tKY_PF_FTRACE_EVENTS_END = " last + 1 " /* above all events */"
	print "};"
	print "#define KY_PF_FTRACE_EVENTS(X) \\"
	print rows
	print "#endif"
}
