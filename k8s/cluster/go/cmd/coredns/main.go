// Command coredns is the DNS server of the test cluster: CoreDNS with only the plugins that its
// configuration uses (k8s/cluster/manifests.yaml). All plugins would add three cloud SDKs.
package main

import (
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"

	"github.com/coredns/coredns/coremain"
)

func main() { coremain.Run() }
