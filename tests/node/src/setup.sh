# Runs once in the namespaces of a node, before its components: mounts and addresses. Nothing of this is
# visible outside.
#   setup.sh STATE SERVICE_IP NODE_IP
set -eu
state=$1 service_ip=$2 node_ip=$3

# All that the node writes is in memory, and gone with the mount namespace.
mount -t tmpfs -o mode=0755 oarlock-node "$state"
cd "$state"
mkdir etcd containerd run kubelet pod-logs registry cni flex-volumes sysctl var var-work

# The kubelet, containerd and the CNI plugins have paths in /var and /run that no flag changes.
mount -t overlay -o "lowerdir=/var,upperdir=$state/var,workdir=$state/var-work" overlay /var
mount -t tmpfs -o mode=0755 run /run
mkdir -p /run/netns /var/lib/kubelet /var/lib/cni /var/log

# The kubelet sets these for the whole machine unless they have the values that it wants.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=sysctl/$(echo "${setting%=*}" | tr / -)
  echo "${setting#*=}" >"$file"
  if [ -e "/proc/sys/${setting%=*}" ]; then
    mount --bind "$file" "/proc/sys/${setting%=*}"
  fi
done

# Without kube-proxy, the address of the Service "kubernetes" is one of this namespace's own. Pods reach it
# over their default route, which ends here.
ip link set lo up
ip address add "$service_ip/32" dev lo
ip address add "$node_ip/32" dev lo
