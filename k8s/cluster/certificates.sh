#!/usr/bin/env bash
# usage: certificates.sh FOLDER
# Creates the certificate authorities, keys and kubeconfigs of a short-lived cluster. Every component
# has its own user, with its usual permissions.
set -euo pipefail
umask 077
mkdir -p "$1/pki"
cd "$1/pki"
days=7

create_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

# create_authority NAME
create_authority() {
  create_key "$1"
  openssl req -x509 -new -sha256 -days $days -key "$1.key" -subj "/CN=$1" -out "$1.crt" \
    -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,digitalSignature,keyCertSign'
}

# issue AUTHORITY NAME SUBJECT USAGE [NAMES]: creates a server or client certificate
issue() {
  local extensions="basicConstraints=CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=$4"
  [ -z "${5:-}" ] || extensions+="
subjectAltName=$5"
  create_key "$2"
  openssl req -new -key "$2.key" -subj "$3" 2> /dev/null |
    openssl x509 -req -sha256 -days $days -CA "$1.crt" -CAkey "$1.key" -CAcreateserial \
      -extfile <(echo "$extensions") -out "$2.crt" 2> /dev/null
}

# write_kubeconfig NAME: embeds the certificates, so that the file is self-contained
write_kubeconfig() {
  cat > "../$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
current-context: cluster
contexts:
  - { name: cluster, context: { cluster: cluster, user: $1 } }
clusters:
  - name: cluster
    cluster: { server: 'https://127.0.0.1:6443', certificate-authority-data: $(base64 -w0 ca.crt) }
users:
  - name: $1
    user: { client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key") }
YAML
}

create_authority ca
create_authority front-proxy-ca # authenticates the API server to aggregated APIs
names=DNS:localhost,IP:127.0.0.1,IP:172.30.0.1,IP:10.96.0.1
for name in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local; do
  names+=,DNS:$name
done
issue ca apiserver /CN=kube-apiserver serverAuth "$names"
issue ca kubelet-server /CN=node1 serverAuth DNS:node1,IP:172.30.0.1
issue ca kubelet-client /CN=kube-apiserver-kubelet-client clientAuth
issue front-proxy-ca front-proxy-client /CN=front-proxy-client clientAuth
issue ca admin /O=system:masters/CN=admin clientAuth
issue ca kubelet /O=system:nodes/CN=system:node:node1 clientAuth
for name in kube-controller-manager kube-scheduler kube-proxy; do
  issue ca $name /CN=system:$name clientAuth
done
for name in admin kubelet kube-controller-manager kube-scheduler kube-proxy; do
  write_kubeconfig $name
done
# Service account tokens are signed with RSA, because some clients support nothing else.
openssl genrsa -out service-accounts.key 2048 2> /dev/null
openssl rsa -in service-accounts.key -pubout -out service-accounts.pub 2> /dev/null
