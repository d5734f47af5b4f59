package main

// What of the packages gets into the root. Everything is named that stays, so that nothing comes along with a new version that
// nobody asked for: no shell, no login, no compiler, no editor, no driver for a device that the box does not have.

// dropped are packages that others depend on but the box can do without, each with the reason.
func dropped() map[string]string {
	return map[string]string{
		"dbus":                     "nothing on the box speaks over a bus that anybody could join",
		"dbus-bin":                 "as dbus",
		"dbus-daemon":              "as dbus",
		"dbus-session-bus-common":  "as dbus",
		"dbus-system-bus-common":   "as dbus",
		"debconf":                  "no package is configured on the box",
		"gcc-16-base":              "documents only",
		"libaudit-common":          "settings of a daemon that is not there",
		"libc-gconv-modules-extra": "nothing converts character sets",
		"libpam-modules":           "nobody logs in",
		"libpam-modules-bin":       "nobody logs in",
		"libpam-runtime":           "nobody logs in",
		"mawk":                     "no scripts",
		"openssl":                  "certificates are put together when the image is made",
		"readline-common":          "no interactive programs",
		"wget":                     "the engine gets its models from the card, never from a network",
	}
}

// kept are the paths that stay, as patterns of path.Match on a path or on a folder that holds it. The order does not matter.
func kept() []string {
	return []string{
		"etc/ld.so.conf", "etc/ld.so.conf.d",
		"usr/lib/ld-linux-aarch64.so.1",
		"usr/lib/aarch64-linux-gnu",
		"usr/lib/os-release",
		"usr/lib/firmware/brcm/brcmfmac43430*", "usr/lib/firmware/brcm/brcmfmac43455*", "usr/lib/firmware/brcm/brcmfmac43456*",
		"usr/lib/firmware/cypress/cyfmac43430*", "usr/lib/firmware/cypress/cyfmac43455*",
		"usr/lib/firmware/regulatory.db-debian", "usr/lib/firmware/regulatory.db.p7s-debian",
		"usr/lib/modprobe.d", "usr/lib/sysctl.d", "usr/lib/sysusers.d", "usr/lib/tmpfiles.d",
		// Every event costs time at a start: the rules for devices that the box can have, and no others.
		"usr/lib/udev/rules.d/50-udev-default.rules", "usr/lib/udev/rules.d/60-block.rules",
		"usr/lib/udev/rules.d/60-persistent-storage.rules", "usr/lib/udev/rules.d/60-gpiochip.rules",
		"usr/lib/udev/rules.d/75-net-description.rules", "usr/lib/udev/rules.d/80-drivers.rules",
		"usr/lib/udev/rules.d/80-net-setup-link.rules", "usr/lib/udev/rules.d/99-systemd.rules",
		"usr/lib/systemd/network/99-default.link",
		"usr/lib/systemd/system", "usr/lib/systemd/system-preset",
		"usr/share/base-passwd", "usr/share/ca-certificates",
		"usr/share/common-licenses", "usr/share/doc/*/copyright",

		// Programs that people and units call.
		"usr/bin/journalctl", "usr/bin/networkctl", "usr/bin/resolvectl", "usr/bin/systemctl", "usr/bin/systemd-analyze",
		"usr/bin/systemd-notify", "usr/bin/systemd-sysusers", "usr/bin/systemd-tmpfiles", "usr/bin/udevadm",
		"usr/bin/kmod", "usr/sbin/modprobe", // which the kernel calls for what it needs, until the door is shut
		"usr/bin/mount", "usr/bin/umount",
		"usr/sbin/fsck", "usr/sbin/e2fsck", "usr/sbin/fsck.ext4", "usr/sbin/resize2fs",
		"usr/sbin/nft", "usr/sbin/wpa_supplicant",
		"usr/bin/llama-server",

		// Of systemd.
		"usr/lib/systemd/systemd", "usr/lib/systemd/systemd-executor", "usr/lib/systemd/systemd-fsck",
		"usr/lib/systemd/systemd-journald", "usr/lib/systemd/systemd-modules-load", "usr/lib/systemd/systemd-networkd",
		"usr/lib/systemd/systemd-networkd-wait-online", "usr/lib/systemd/systemd-random-seed", "usr/lib/systemd/systemd-resolved",
		"usr/lib/systemd/systemd-shutdown", "usr/lib/systemd/systemd-socket-proxyd", "usr/lib/systemd/systemd-sysctl",
		"usr/lib/systemd/systemd-timesyncd", "usr/lib/systemd/systemd-udevd",
		"usr/lib/systemd/system-generators/systemd-fstab-generator",
	}
}

// removed are paths that kept would keep.
func removed() []string {
	return []string{
		"usr/lib/aarch64-linux-gnu/llama/libllama-bench-impl.so", "usr/lib/aarch64-linux-gnu/llama/libllama-cli-impl.so",
		"usr/lib/aarch64-linux-gnu/llama/libllama-quantize-impl.so", "usr/lib/aarch64-linux-gnu/llama/libllama-completion-impl.so",
		"usr/lib/aarch64-linux-gnu/gconv", "usr/lib/aarch64-linux-gnu/security", "usr/lib/aarch64-linux-gnu/perl-base",
		"usr/lib/aarch64-linux-gnu/audit", "usr/lib/aarch64-linux-gnu/ossl-modules", "usr/lib/aarch64-linux-gnu/engines-3",
		// Units that start a system of another kind: one that is installed, extended, put to sleep, repaired by hand or logged into.
		"usr/lib/systemd/system/*getty*", "usr/lib/systemd/system/breakpoint-*", "usr/lib/systemd/system/initrd*",
		"usr/lib/systemd/system/rescue.*", "usr/lib/systemd/system/emergency.service", "usr/lib/systemd/system/debug-shell.service",
		"usr/lib/systemd/system/user*", "usr/lib/systemd/system/capsule*", "usr/lib/systemd/system/systemd-ask-password*",
		"usr/lib/systemd/system/systemd-*sysext*", "usr/lib/systemd/system/systemd-confext*", "usr/lib/systemd/system/*factory-reset*",
		"usr/lib/systemd/system/system-install*", "usr/lib/systemd/system/system-update*", "usr/lib/systemd/system/systemd-sysinstall*",
		"usr/lib/systemd/system/hibernate*", "usr/lib/systemd/system/hybrid-sleep*", "usr/lib/systemd/system/suspend*",
		"usr/lib/systemd/system/storage-target-mode.target", "usr/lib/systemd/system/ssh-access.target",
		"usr/lib/systemd/system/proc-sys-fs-binfmt_misc.*", "usr/lib/systemd/system/dev-hugepages.mount",
		"usr/lib/systemd/system/sys-kernel-debug.mount", "usr/lib/systemd/system/sys-kernel-tracing.mount",
		"usr/lib/systemd/system/sys-fs-fuse-connections.mount", "usr/lib/systemd/system/quota*", "usr/lib/systemd/system/systemd-quota*",
		"usr/lib/systemd/system/systemd-tmpfiles-clean.timer", "usr/lib/systemd/system/ldconfig.service",
		"usr/lib/systemd/system/systemd-sysusers.service", "usr/lib/systemd/system/systemd-machine-id-commit.service",
		"usr/lib/systemd/system/systemd-journal-flush.service", "usr/lib/systemd/system/systemd-journal-catalog-update.service",
		"usr/lib/systemd/system/systemd-hwdb-update.service", "usr/lib/systemd/system/systemd-update-done.service",
		"usr/lib/systemd/system/systemd-firstboot.service", "usr/lib/systemd/system/nftables.service",
		"usr/lib/systemd/system/systemd-journalctl*", "usr/lib/systemd/system/systemd-journald-audit.socket",
		"usr/lib/systemd/system/default.target", "usr/lib/systemd/system/ctrl-alt-del.target",
		"usr/lib/systemd/system/e2scrub*", "usr/lib/systemd/system/fstrim.*", "usr/lib/systemd/system/wpa_supplicant-wired@.service",
		"usr/lib/tmpfiles.d/provision.conf", "usr/lib/tmpfiles.d/20-systemd-*", "usr/lib/tmpfiles.d/x11.conf",
		"usr/lib/tmpfiles.d/etc.conf", "usr/lib/tmpfiles.d/home.conf", "usr/lib/tmpfiles.d/legacy.conf", "usr/lib/tmpfiles.d/credstore.conf",
		"usr/lib/tmpfiles.d/systemd-nologin.conf", "usr/lib/tmpfiles.d/debian.conf",
	}
}

// rootModules are the kernel's modules that a box needs, beside those that they depend on. Drivers that could pose as a GPIO line, a
// bus or an input are not among them (package rootlist says which those are), and none of a network that is not the home's.
func rootModules() []string {
	return []string{
		// File systems, and the root's hashes.
		"ext4", "erofs", "dm_mod", "dm_verity", "vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8", "configfs", "autofs4",
		// Disks: the Pi's card and NVMe, a stick, the emulator's.
		"sdhci_iproc", "sdhci_brcmstb", "bcm2835", "nvme", "sd_mod", "usb_storage", "uas", "virtio_blk",
		// The Pi itself.
		"reset_raspberrypi", "raspberrypi_cpufreq", "cpufreq_dt", "bcm2835_thermal", "bcm2711_thermal", "bcm2835_wdt", "bcm2835_rng",
		"iproc_rng200", "irq_bcm2712_mip", "pinctrl_brcmstb_bcm2712", "gpio_brcmstb", "rp1_pci", "clk_rp1", "pinctrl_rp1",
		"fixed", "gpio_regulator", "pwm_bcm2835", "pwm_fan", "leds_gpio", "nvmem_rmem", "dw_wdt",
		// The panel.
		"i2c_dev", "i2c_bcm2835", "i2c_designware_platform", "spi_bcm2835",
		// The home network.
		"genet", "bcm_phy_lib", "broadcom", "bcm7xxx", "macb", "brcmfmac", "brcmfmac_wcc", "brcmfmac_cyw", "virtio_net",
		"nf_tables", "nft_ct", "nft_limit", "nft_log", "nft_reject", "nft_reject_inet", "nf_conntrack", "nf_log_syslog",
		// USB: hosts for a stick, and the port with which the box itself can pose as one.
		"usbcore", "xhci_pci", "xhci_plat_hcd", "ehci_platform", "ohci_platform", "dwc2", "dwc3", "phy_generic",
		"libcomposite", "usb_f_mass_storage",
		// The emulator.
		"virtio_mmio", "virtio_rng",
	}
}

// bootModules are what the first process loads.
func bootModules() []string {
	return []string{
		"dm_mod", "dm_verity", "erofs",
		"virtio_mmio", "virtio_blk",
		"reset_raspberrypi", "fixed", "gpio_regulator", "pinctrl_brcmstb_bcm2712", "gpio_brcmstb",
		"sdhci_iproc", "sdhci_brcmstb", "bcm2835", "nvme",
	}
}
