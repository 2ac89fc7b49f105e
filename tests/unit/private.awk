# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What `nm -D` says that providers take of libibverbs' private symbols, to C that defines them, and to a
# linker map in file @map. None may be called but that by which a provider says that it is there, and its log.
BEGIN {
	print "#include <stdlib.h>"
	print "extern const void *fake_drivers[8];"
	print "const void *fake_drivers[8];"
	print "static int n;"
	print "FAKE { global: fake_*; local: *; };" > map
}
split($2, name, "@") == 2 && name[2] ~ /^IBVERBS_PRIVATE_/ && !($2 in seen) {
	seen[$2]
	printf "void %s(const void *ops);\n", name[1]
	if (name[1] ~ /^verbs_register_driver_/)
		printf "void %s(const void *ops) { if (n < 8) fake_drivers[n++] = ops; }\n", name[1]
	else if (name[1] ~ /_log$/)
		printf "void %s(const void *ops) { (void)ops; }\n", name[1]
	else
		printf "void %s(const void *ops) { (void)ops; abort(); }\n", name[1]
	nodes[name[2]] = nodes[name[2]] " " name[1] ";"
}
END {
	for (node in nodes)
		printf "%s { global:%s };\n", node, nodes[node] > map
}
