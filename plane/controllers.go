package main

import (
	"context"
	"errors"
	"time"

	feature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

const (
	workers = 4
	// Without its own clock a controller looks at everything again after this time.
	resync = 10 * time.Minute
	rate   = 200 // requests a second
)

// runControllers runs Kubernetes' own controllers of workloads, those that create pods, until it is told to end.
func runControllers(arguments []string) error {
	if len(arguments) != 1 && len(arguments) != 2 {
		return errors.New("usage: plane controllers KUBECONFIG [FEATURE=true,...]")
	}
	if len(arguments) == 2 {
		if err := feature.DefaultMutableFeatureGate.Set(arguments[1]); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", arguments[0])
	if err != nil {
		return err
	}
	config.QPS, config.Burst = rate, 2*rate
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := signals.SetupSignalContext()
	factory := informers.NewSharedInformerFactory(client, resync)
	runners, err := controllers(ctx, client, factory)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for _, run := range runners {
		go run(ctx, workers)
	}
	<-ctx.Done()
	return nil
}

type runner func(ctx context.Context, workers int)

func controllers(ctx context.Context, client kubernetes.Interface, all informers.SharedInformerFactory) ([]runner, error) {
	pods, jobs, sets := all.Core().V1().Pods(), all.Batch().V1().Jobs(), all.Apps().V1().ReplicaSets()
	native := all.Scheduling().V1alpha2()
	ofJobs, err := job.NewController(ctx, client, pods, jobs, native.Workloads(), native.PodGroups())
	if err != nil {
		return nil, err
	}
	ofCronJobs, err := cronjob.NewControllerV2(ctx, jobs, all.Batch().V1().CronJobs(), client)
	if err != nil {
		return nil, err
	}
	ofDeployments, err := deployment.NewDeploymentController(ctx, all.Apps().V1().Deployments(), sets, pods, client)
	if err != nil {
		return nil, err
	}
	ofReplicaSets := replicaset.NewReplicaSetController(ctx, sets, pods, client, replicaset.BurstReplicas)
	ofStatefulSets := statefulset.NewStatefulSetController(ctx, pods, all.Apps().V1().StatefulSets(),
		all.Core().V1().PersistentVolumeClaims(), all.Apps().V1().ControllerRevisions(), client)
	return []runner{ofJobs.Run, ofCronJobs.Run, ofDeployments.Run, ofReplicaSets.Run, ofStatefulSets.Run}, nil
}
