// Kubeflow's controller of TFJobs as its training operator runs it, without the controllers of other
// kinds, webhooks and their certificates. "peer validate" answers for its webhook: it reads a TFJob a
// line as JSON, and prints why it is refused, or an empty line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/controller.v1/tensorflow"
	webhook "github.com/kubeflow/training-operator/pkg/webhooks/tensorflow"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	plugins "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
)

// The flags of the training operator, with its defaults.
var (
	namespace = flag.String("namespace", "", "")
	gang      = flag.String("gang-scheduler-name", "", "")
	elect     = flag.Bool("leader-elect", false, "")
	electID   = flag.String("leader-election-id", "1ca428e5.training-operator.kubeflow.org", "")
	electIn   = flag.String("leader-election-namespace", "", "")
	threads   = flag.Int("controller-threads", 1, "")
	qps       = flag.Float64("kube-api-qps", 20, "")
	burst     = flag.Int("kube-api-burst", 30, "")
)

func run() error {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, kubeflow.AddToScheme, volcano.AddToScheme, plugins.AddToScheme,
	} {
		if err := add(known); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(*qps), *burst)
	options := ctrl.Options{
		Scheme:                  known,
		Metrics:                 metrics.Options{BindAddress: "0"},
		LeaderElection:          *elect,
		LeaderElectionID:        *electID,
		LeaderElectionNamespace: *electIn,
	}
	if *namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{*namespace: {}}
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	setup := common.GenNonGangSchedulerSetupFunc()
	if strings.EqualFold(*gang, string(common.GangSchedulerVolcano)) {
		client, err := volcanoclient.NewForConfig(config)
		if err != nil {
			return err
		}
		setup = common.GenVolcanoSetupFunc(client)
	} else if *gang != "" {
		setup = common.GenSchedulerPluginsSetupFunc(manager.GetClient(), *gang)
	}
	if err := tensorflow.NewReconciler(manager, setup).SetupWithManager(manager, *threads); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func validate() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		job := &kubeflow.TFJob{}
		err := json.Unmarshal(lines.Bytes(), job)
		if err == nil {
			_, err = (&webhook.Webhook{}).ValidateCreate(context.Background(), job)
		}
		if err == nil {
			fmt.Println()
		} else {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
		}
	}
	return lines.Err()
}

func main() {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	work := run
	if flag.Arg(0) == "validate" {
		work = validate
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
