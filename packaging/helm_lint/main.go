// helm-lint FOLDER: checks a chart as `helm lint` does and prints its templates as `helm template` does,
// with Helm's own packages. It ends with 1 if the chart has an error or a warning. No test runs it: its first build
// takes some 4 minutes of a core.
//
//	cd packaging/helm_lint && go run . ../../deploy/kubernetes/helm
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

const namespace = "muster"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: helm-lint FOLDER")
		os.Exit(2)
	}
	folder := os.Args[1]
	found := lint.AllWithKubeVersion(folder, nil, namespace, nil)
	for _, message := range found.Messages {
		fmt.Println(message)
	}
	if err := render(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if found.HighestSeverity >= support.WarningSev {
		os.Exit(1)
	}
}

func render(folder string) error {
	chart, err := loader.Load(folder)
	if err != nil {
		return err
	}
	release := chartutil.ReleaseOptions{Name: "muster-operator", Namespace: namespace, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, nil, release, nil)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return err
	}
	for name, text := range files {
		fmt.Printf("--- %s\n%s\n", name, text)
	}
	return nil
}
