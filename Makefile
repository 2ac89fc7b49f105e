# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# repath: see README.md. All outputs go to build/; what belongs to one kernel to build/RELEASE/.
#
#   make                    the module, the shim library, the tools
#   make check              all tests; the last line sums them up
#   make check-style        shellcheck, sparse, kernel-doc, checkpatch
#   make check-unit         unit tests on the host, KUnit suites in a guest
#   make check-vm T=NAME    tests between guests (T: names or patterns; default all)
#   make demo               perftest survives a live migration
#   make bench              measurements
#   make install            DESTDIR= and PREFIX= as usual
#
#   KERNEL=6.1.0-56-amd64   the kernel to build for and to boot (default: the newest with headers)

# Not ?=: where nothing is installed yet it is empty here, and known in the make after setup.
ifeq ($(strip $(KERNEL)),)
images := $(patsubst /boot/vmlinuz-%,%,$(wildcard /boot/vmlinuz-*))
headers := $(patsubst /lib/modules/%/build,%,$(wildcard /lib/modules/*/build))
KERNEL := $(shell printf '%s\n' $(filter $(headers),$(images)) | sort -V | tail -n 1)
endif
KDIR ?= /lib/modules/$(KERNEL)/build
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib/x86_64-linux-gnu
export KERNEL

KBUILD_DIR := build/$(KERNEL)
# All processors, unless make was told how many.
BUILD = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

.PHONY: all
all: setup
	+@$(BUILD) module shim tools

# Each part names its rules and outputs in its own file.
SHIM :=
TOOLS :=
APPS :=
UNIT :=
-include libshim/Makefile.inc tools/Makefile.inc tests/apps/Makefile.inc tests/unit/Makefile.inc
-include tests/bench/Makefile.inc kmod/tests/Makefile.inc
-include tests/vfabric/Makefile.inc

.PHONY: setup module shim tools apps unit guest-files
setup:
	@scripts/setup
shim: $(SHIM)
tools: $(TOOLS)
apps: $(APPS)
unit: $(UNIT)
# What the test bed puts into every guest.
guest-files: module shim tools apps

# Kbuild leaves its objects beside the sources: it gets a copy, so that the tree stays clean and
# several kernels can be built for side by side.
module:
	@mkdir -p $(KBUILD_DIR)/module
	@cp -rpu Kbuild kmod include $(KBUILD_DIR)/module
	+@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/$(KBUILD_DIR)/module modules
	@cp -pu $(KBUILD_DIR)/module/ib_repath.ko $(KBUILD_DIR)/

.PHONY: check check-style check-unit check-vm demo bench
check: setup
	+@$(BUILD) guest-files unit
	@UNIT="$(UNIT)" tests/run style unit kunit vm
check-style: setup
	@tests/run style
check-unit: setup
	+@$(BUILD) unit
	@UNIT="$(UNIT)" tests/run unit kunit
check-vm: setup
	+@$(BUILD) guest-files
	@T="$(T)" tests/run vm
demo: setup
	+@$(BUILD) guest-files
	@scripts/demo
bench: setup
	+@$(BUILD) guest-files
	@tests/bench/run

.PHONY: install install-module install-shim install-tools clean
install: install-module install-shim install-tools
install-module: module
	+@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/$(KBUILD_DIR)/module \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) INSTALL_MOD_DIR=updates modules_install
install-shim: $(SHIM)
	install -D -m 755 -t $(DESTDIR)$(LIBDIR) $(SHIM)

clean:
	rm -rf build
