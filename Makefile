# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# repath: see README.md. All outputs go to build/; what belongs to one kernel to build/RELEASE/.
#
#   make                    the module, the shim library, the tools, OpenSM's plugin
#   make check              all tests; the last line sums them up (the debug kernel only if it is built)
#   make check-style        shellcheck, sparse, kernel-doc, checkpatch
#   make check-unit         unit tests on the host, KUnit suites in a guest
#   make check-vm T=NAME    tests between guests (T: names or patterns; default all)
#   make check-kernel       KUnit, tracking, a move, a software HCA: for KERNEL=6.12
#   make check-debug        the same and more on the debug kernel, which it builds (15 minutes)
#   make check-dkms         the Debian packages, and DKMS in clean roots
#   make check-ci           check, and all three of these
#   make check-long         tests between guests that are left out of check, as they take minutes or measure
#   make demo               perftest survives a live migration
#   make demo-repath        queue pairs follow OpenSM to other lanes when links go down
#   make bench B=NAME       measurements (B: names, as tests/bench/run -l lists them; default all)
#   make install            DESTDIR= and PREFIX= as usual
#
#   KERNEL=6.1.0-56-amd64   the kernel to build for and to boot (default: the newest with headers; of make and
#                           make install the running one, if its headers are there)
#   KERNEL=6.12             the newest of a series that Debian has: unpacked into the cache
#   KERNEL=debug            with KASAN, lockdep, kmemleak: built into the cache (15 minutes)

# Not ?=: where nothing is installed yet it is empty here, and known in the make after setup.
ifeq ($(strip $(KERNEL)),)
images := $(patsubst /boot/vmlinuz-%,%,$(wildcard /boot/vmlinuz-*))
headers := $(patsubst /lib/modules/%/build,%,$(wildcard /lib/modules/*/build))
# Guests boot the newest, as tests/vm/kernel.py and tests/style have it: only what is installed is for the running one.
ifeq ($(filter-out all install%,$(MAKECMDGOALS)),)
KERNEL := $(filter $(shell uname -r),$(filter $(headers),$(images)))
endif
ifeq ($(strip $(KERNEL)),)
KERNEL := $(shell printf '%s\n' $(filter $(headers),$(images)) | sort -V | tail -n 1)
endif
endif

# What is not installed is a kernel that scripts/kernel unpacks beside the machine's: its root
# directory is called as its release.
ifeq ($(wildcard /boot/vmlinuz-$(KERNEL) /lib/modules/$(KERNEL)/build $(KERNEL_ROOT)/boot/vmlinuz-$(KERNEL)),)
ifneq ($(strip $(KERNEL)),)
override KERNEL_ROOT := $(shell KERNEL= scripts/setup >&2 && \
	$(if $(filter debug,$(KERNEL)),tests/debug/kernel,scripts/kernel $(KERNEL)))
ifeq ($(KERNEL_ROOT),)
$(error there is no kernel $(KERNEL))
endif
override KERNEL := $(notdir $(KERNEL_ROOT))
export KERNEL_ROOT
endif
endif
KDIR ?= $(KERNEL_ROOT)/lib/modules/$(KERNEL)/build
PREFIX ?= /usr
LIBDIR ?= $(PREFIX)/lib/x86_64-linux-gnu
export KERNEL

KBUILD_DIR := build/$(KERNEL)
# All processors, unless make was told how many.
BUILD = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
# What these build they have built by a make of their own: two of them at once would both write it.
ifneq ($(filter all check% demo% bench,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

.PHONY: all
all:
	@scripts/setup -b
	+@$(BUILD) module shim tools sm

# Each part names its rules and outputs in its own file.
SHIM :=
TOOLS :=
APPS :=
UNIT :=
-include libshim/Makefile.inc tools/fabric/Makefile.inc tools/Makefile.inc tests/apps/Makefile.inc tests/unit/Makefile.inc
-include tests/mpi/Makefile.inc tests/bench/Makefile.inc kmod/tests/Makefile.inc
-include tests/vfabric/Makefile.inc tests/vhca/Makefile.inc tests/debug/Makefile.inc
-include sm/Makefile.inc tests/sm/Makefile.inc tests/fabric/Makefile.inc

.PHONY: setup module shim tools apps unit guest-files
setup:
	@scripts/setup
shim: $(SHIM)
tools: $(TOOLS)
apps: $(APPS)
unit: $(UNIT)
# What the test bed puts into every guest.
guest-files: module shim tools sm apps vhca vfabric

# Kbuild leaves its objects beside the sources: it gets a copy, so that the tree stays clean and
# several kernels can be built for side by side.
module:
	@mkdir -p $(KBUILD_DIR)/module
	@cp -rpu Kbuild kmod include $(KBUILD_DIR)/module
	+@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/$(KBUILD_DIR)/module \
		$(if $(findstring -repath-debug-,$(KERNEL)),UBSAN_SANITIZE=y) modules
	@cp -pu $(KBUILD_DIR)/module/ib_repath.ko $(KBUILD_DIR)/

.PHONY: check check-style check-unit check-vm check-kernel check-debug check-dkms check-ci check-long demo demo-repath bench
check: setup
	+@$(BUILD) guest-files unit
	@UNIT="$(UNIT)" tests/run style unit kunit vm debug
check-style: setup
	@tests/run style
check-unit: setup
	+@$(BUILD) unit
	@UNIT="$(UNIT)" tests/run unit kunit
check-vm: setup
	+@$(BUILD) guest-files
	@T="$(T)" tests/run vm
check-ci: setup
	+@$(BUILD) guest-files unit
	@UNIT="$(UNIT)" tests/run style unit kunit vm dkms 6.12 debug
check-kernel: setup
	+@$(BUILD) guest-files
	@T="$(or $(T),track_* move_server vhca_management vhca_states vhca_paths vhca_hotplug)" tests/run kunit vm
check-debug:
	+@$(MAKE) --no-print-directory KERNEL=debug FUZZ_MESSAGES=$(or $(FUZZ_MESSAGES),40000) \
		STRESS_ROUNDS=$(or $(STRESS_ROUNDS),100) \
		T="$(or $(T),bed_boot track_* fuzz_* peer_move move_server vhca_management reroute_lanes)" check-kernel
check-dkms: setup
	@tests/dkms/run
check-long: setup
	+@$(BUILD) guest-files
	@tests/vm/run $$(grep -l '^PENDING = ' tests/vm/test_*.py | sed 's|.*/test_||; s|\.py$$||')
demo: setup
	+@$(BUILD) guest-files
	@scripts/demo
demo-repath: setup
	+@$(BUILD) guest-files
	@scripts/demo-repath
bench: setup
	@scripts/setup hpcc
	+@$(BUILD) bench-files
	@tests/bench/run $(B)

.PHONY: install install-module install-shim install-tools install-units clean
install: install-module install-shim install-tools install-sm install-units
install-module: module
	+@$(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR)/$(KBUILD_DIR)/module \
		$(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) INSTALL_MOD_DIR=updates modules_install
	$(if $(DESTDIR),,depmod $(KERNEL))
	install -D -m 644 debian/repath-dkms.repath.modprobe $(DESTDIR)/etc/modprobe.d/repath.conf
install-shim: $(SHIM)
	install -D -m 755 -t $(DESTDIR)$(LIBDIR) $(SHIM)
# In packages this is debhelper's work.
UNITDIR ?= $(PREFIX)/lib/systemd/system
UDEVDIR ?= $(PREFIX)/lib/udev/rules.d
install-units:
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)/etc/repath/hooks
	for unit in adopt agent; do \
		sed 's|/usr/sbin/|$(SBINDIR)/|' debian/repath.repath-$$unit.service > $(DESTDIR)$(UNITDIR)/repath-$$unit.service || exit; \
	done
	install -D -m 644 debian/repath.udev $(DESTDIR)$(UDEVDIR)/60-repath.rules

clean:
	rm -rf build
