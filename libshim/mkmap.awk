# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# verbs.def to a linker version script: nodes in the order in which they appear, each after the last.
BEGIN {
	FS = "[(), ]+"
}
$1 == "RP_WRAP" && NF > 3 {
	if (!($3 in names))
		node[++n] = $3
	names[$3] = names[$3] "\t\t" $2 ";\n"
}
END {
	for (i = 1; i <= n; i++)
		printf "%s {\n\tglobal:\n%s%s}%s;\n\n", node[i], names[node[i]],
			(i == 1 ? "\tlocal:\n\t\t*;\n" : ""), (i > 1 ? " " node[i - 1] : "")
}
