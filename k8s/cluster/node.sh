#!/usr/bin/env bash
# usage: node.sh PROGRAMS STATE CGROUP NODEJS
# The init process of the cluster's namespaces, started by start-cluster.ts. Sets up mounts, sysctls
# and network, and restarts components that exit. When it exits, the kernel kills every process of
# the cluster and removes its mounts and its network.
set -euo pipefail
programs=$1 state=$2 cgroup=$3 nodejs=$4
here=$(cd "$(dirname "$0")" && pwd)
export PATH="$programs:$PATH:/usr/sbin:/sbin"
address=172.30.0.1
services=10.96.0.0/16

# The default paths of kubelet, containerd and CNI are private to the cluster: /run is empty, /var/lib
# and /var/log are folders of STATE. Mounts stay in this namespace; pods' volumes propagate within it.
mount --make-rprivate /
mount --make-rshared /
mkdir -p "$state/node/lib" "$state/node/log"
mount --bind "$state/node/log" /var/log
mount -t tmpfs -o mode=755 tmpfs /run
mount --bind "$state/node/lib" /var/lib
files=/var/lib/cluster
mkdir -p /run/lock /run/pids /var/log/components $files/cni /var/lib/kubelet /var/lib/cni

# The kubelet changes these settings of the whole machine unless they have its preferred values. Bind
# mounts present files with these values to it, so that the machine's settings stay unchanged.
while read -r setting value; do
  mkdir -p "/run/sysctl/$(dirname "$setting")"
  echo "$value" > "/run/sysctl/$setting"
  mount --bind "/run/sysctl/$setting" "/proc/sys/$setting"
done <<'SETTINGS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SETTINGS

hostname node1
ip link set lo up
ip link add node0 type bridge
ip address add $address/24 dev node0
ip link set node0 up
# A Service address is translated after the route lookup, so it needs a route. There is no default
# route, so that connections to the outside fail immediately.
ip route add $services dev node0
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
echo 0 > /proc/sys/net/ipv4/icmp_ratelimit # every rejected connection gets an ICMP error immediately
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet # 127.0.0.1:NODEPORT, as on other test clusters

cp "$here"/config/{containerd.toml,kubelet.yaml,kube-proxy.yaml,audit.yaml} $files/
cp "$here/config/pods.conflist" $files/cni/10-pods.conflist
echo 'nameserver 10.96.0.10' > $files/resolv.conf
"$here/certificates.sh" $files
pki=$files/pki

# keep NAME COMMAND...: runs it, and restarts it one second after it exits
keep() {
  local name=$1
  shift
  while :; do
    "$@" >> "/var/log/components/$name.log" 2>&1 &
    echo $! > "/run/pids/$name"
    wait $! || true
    echo "--- $name has exited and is restarted" >> "/var/log/components/$name.log"
    sleep 1
  done &
}

# await SECONDS COMMAND...
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@" > /dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "timed out: $*" >&2; exit 1; }
    sleep 0.2
  done
}

keep containerd containerd --config $files/containerd.toml
# No fsync: a test cluster need not survive a crash of the machine.
keep etcd etcd --name node1 --data-dir /var/lib/etcd --unsafe-no-fsync --log-level warn \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
  --initial-cluster node1=http://127.0.0.1:2380
# Beta in 1.34, and off by default; test/cluster/openshift.ts needs it.
beta=admissionregistration.k8s.io/v1beta1
mutating=$beta/mutatingadmissionpolicies=true,$beta/mutatingadmissionpolicybindings=true
keep kube-apiserver kube-apiserver --etcd-servers http://127.0.0.1:2379 \
  --secure-port 6443 --bind-address 0.0.0.0 --advertise-address $address \
  --service-cluster-ip-range $services --anonymous-auth=true \
  --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
  --client-ca-file $pki/ca.crt --tls-cert-file $pki/apiserver.crt --tls-private-key-file $pki/apiserver.key \
  --kubelet-certificate-authority $pki/ca.crt --kubelet-preferred-address-types InternalIP \
  --kubelet-client-certificate $pki/kubelet-client.crt --kubelet-client-key $pki/kubelet-client.key \
  --requestheader-client-ca-file $pki/front-proxy-ca.crt --requestheader-allowed-names front-proxy-client \
  --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
  --requestheader-extra-headers-prefix X-Remote-Extra- \
  --audit-policy-file $files/audit.yaml --audit-log-path /var/log/components/audit.log \
  --proxy-client-cert-file $pki/front-proxy-client.crt --proxy-client-key-file $pki/front-proxy-client.key \
  --service-account-issuer https://kubernetes.default.svc.cluster.local \
  --service-account-key-file $pki/service-accounts.pub --service-account-signing-key-file $pki/service-accounts.key \
  --feature-gates MutatingAdmissionPolicy=true --runtime-config "$mutating" \
  --profiling=false ${KUBE_APISERVER_ARGS:-}
await 90 kubectl --kubeconfig $files/admin.kubeconfig get --raw /readyz
# user NAME: the kubeconfig flags with which a component calls the API server and authorizes callers
user() { for flag in '' authentication- authorization-; do echo "--${flag}kubeconfig=$files/$1.kubeconfig"; done; }
mapfile -t as < <(user kube-controller-manager)
keep kube-controller-manager kube-controller-manager "${as[@]}" --leader-elect=false --bind-address 127.0.0.1 \
  --use-service-account-credentials --root-ca-file $pki/ca.crt \
  --service-account-private-key-file $pki/service-accounts.key \
  --cluster-signing-cert-file $pki/ca.crt --cluster-signing-key-file $pki/ca.key \
  --cluster-cidr 10.244.0.0/16 --service-cluster-ip-range $services --allocate-node-cidrs=false \
  --profiling=false ${KUBE_CONTROLLER_MANAGER_ARGS:-}
mapfile -t as < <(user kube-scheduler)
keep kube-scheduler kube-scheduler "${as[@]}" --leader-elect=false --bind-address 127.0.0.1 --profiling=false
await 60 ctr version
for image in pause coredns; do
  ctr --namespace k8s.io images import "$state/images/$image.tar" > /dev/null
done
keep kubelet kubelet --config $files/kubelet.yaml --kubeconfig $files/kubelet.kubeconfig \
  --root-dir /var/lib/kubelet --hostname-override node1 --node-ip $address --cgroup-root "$cgroup"
keep kube-proxy kube-proxy --config $files/kube-proxy.yaml
keep network-policies "$nodejs" "$here/enforce-policies.ts" $pki
for volume in $(seq 1 "${VOLUMES:-16}"); do
  mkdir -p -m 0777 "/var/lib/volumes/$volume" # any user may write to the volume of its pod
done
cp $files/admin.kubeconfig "$state/kubeconfig"
wait
