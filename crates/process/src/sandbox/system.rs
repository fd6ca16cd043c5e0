//! What every program needs of the system, and what of it holds no secret.

/// Files and folders that a confined child may read. `/etc` is named file by file: it also has password hashes, private keys
/// of the machine and settings of other programs.
pub(super) const READABLE: &[&str] = &[
    // Programs and libraries.
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/alternatives",
    // Names of hosts, services and users.
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    // Where `/etc/resolv.conf` points, as folders: the files in them are replaced when the network changes.
    "/run/resolvconf",
    "/run/systemd/resolve",
    // Certificates of authorities, never the folders of private keys beside them.
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/var/lib/ca-certificates",
    // Time, language, the name of the system. Git ends when it may not look for its settings.
    "/etc/debian_version",
    "/etc/gitconfig",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/timezone",
    // The runtimes of languages read their own process here. Of other processes they see what everybody sees (the command
    // line); environment, memory, files and folders are refused by the kernel to whoever could not trace them, and
    // nobody in a fence can trace a process outside. A rule for `/proc/self` would hold for one process and not for
    // those that it starts.
    "/proc",
    // How many processors and how much memory there are.
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/random",
    "/dev/urandom",
];

/// Sockets of the services that look up names, for kernels that govern such sockets.
pub(super) const NAME_SERVICES: &[&str] =
    &["/run/nscd/socket", "/run/systemd/resolve", "/run/systemd/userdb", "/var/run/nscd/socket"];

/// Devices that programs write to without changing anything.
pub(super) const HARMLESS_DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// The terminals of everybody with the same user: not for a confined child, which could read what is typed into them.
pub(super) const TERMINALS: &[&str] = &["/dev/tty", "/dev/ptmx", "/dev/pts"];
