# SPDX-License-Identifier: MIT
# syscall_names.awk: make syscall_names.h of syscall_names.txt, at build time: the names by number, for initialisers.
/^#/ { next }
$2 != "-" { x86_64 = x86_64 " [" $2 "] = \"sys_" $1 "\"," }
$3 != "-" { generic = generic " [" $3 "] = \"sys_" $1 "\"," }
END {
	print "/* Made of syscall_names.txt by syscall_names.awk. */"
	print "#define KY_SYSCALLS_X86_64" x86_64
	print "#define KY_SYSCALLS_GENERIC" generic
}
