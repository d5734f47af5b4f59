# U-Boot runs this. It picks the slot, takes one of its tries off, writes that down, and starts the slot's kernel. Whatever goes wrong
# after that restarts the machine, until the slot has no tries left. Package slots says how the state is kept; here are its numbers:
# a copy of 0x200 bytes at sectors 0x400 and 0x600.
setenv bootargs
${devtype} dev ${devnum}
setenv known
for at in 0x400 0x600; do
  if test -z "${known}"; then
    if ${devtype} read ${kernel_addr_r} ${at} 1; then
      if env import -c ${kernel_addr_r} 0x200 BOOT_ORDER BOOT_A_LEFT BOOT_B_LEFT; then setenv known yes; fi
    fi
  fi
done
if test -z "${known}"; then
  setenv BOOT_ORDER "A B"
  setenv BOOT_A_LEFT 3
  setenv BOOT_B_LEFT 3
fi

setenv slot
for try in ${BOOT_ORDER}; do
  if test -z "${slot}"; then
    if test "${try}" = A; then
      if test 0x${BOOT_A_LEFT} -gt 0; then
        setexpr BOOT_A_LEFT ${BOOT_A_LEFT} - 1
        setenv slot a
      fi
    fi
    if test "${try}" = B; then
      if test 0x${BOOT_B_LEFT} -gt 0; then
        setexpr BOOT_B_LEFT ${BOOT_B_LEFT} - 1
        setenv slot b
      fi
    fi
  fi
done
if test -z "${slot}"; then
  echo "no slot has a try left: all of them get new ones"
  setenv BOOT_ORDER "A B"
  setenv BOOT_A_LEFT 3
  setenv BOOT_B_LEFT 3
fi

# The second copy first: see package slots.
env export -c -s 0x200 ${kernel_addr_r} BOOT_ORDER BOOT_A_LEFT BOOT_B_LEFT
${devtype} write ${kernel_addr_r} 0x600 1
${devtype} write ${kernel_addr_r} 0x400 1

if test -n "${slot}"; then
  echo "slot ${slot}"
  if load ${devtype} ${devnum}:${distro_bootpart} ${kernel_addr_r} EFI/Linux/assent-${slot}.efi; then
    if test -z "${fdt_addr}"; then
      setenv fdt_addr ${fdtcontroladdr}
    fi
    # The first process takes no disk of another sort than the one that this is from: an older card of the same image may be in
    # the box, too. It is told in the device tree, which needs a place where it can grow: 128 MiB behind the kernel.
    setexpr tree ${kernel_addr_r} + 0x8000000
    if fdt move ${fdt_addr} ${tree}; then
      fdt resize 0x1000
      fdt set /chosen assent,disk "${devtype}"
      setenv fdt_addr ${tree}
    fi
    bootefi ${kernel_addr_r} ${fdt_addr}
  fi
fi
reset
