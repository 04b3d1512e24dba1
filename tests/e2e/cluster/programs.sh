# shellcheck shell=bash
# Which Kubernetes the tests run and where its programs lie. Sourced by lib.sh and by who wants only these names.

k8s_version=1.20.2
k8s_dir=${GLIDEPOD_CACHE:-/var/cache/glidepod}/kubernetes-$k8s_version-2  # the last number grows when `build` makes it otherwise
k8s_programs=(kube-apiserver kube-controller-manager kube-scheduler kubelet)
debian_programs=(etcd containerd containerd-shim-runc-v2 ctr runc)  # which are not built, but Debian's
