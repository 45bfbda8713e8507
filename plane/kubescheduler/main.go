// Command kubescheduler is kube-scheduler as Kubernetes ships it, from the same modules as the control plane.
// `maniple bench --live --kube-scheduler` measures it beside Maniple; binary.py builds it when asked to.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand()))
}
