// Makes pods and services as a controller of TFJobs does, and does nothing else: what an API server
// takes at most. It prints how many it made a second.
//
//	load SERVER AUTHORITY TOKEN NAMESPACE PODS CONNECTIONS
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const metadata = `"metadata":{"name":"load-worker-%d","labels":{"training.kubeflow.org/job-name":"load",` +
	`"training.kubeflow.org/operator-name":"tfjob-controller",` +
	`"training.kubeflow.org/replica-index":"%d","training.kubeflow.org/replica-type":"worker"},` +
	`"ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"TFJob","name":"load",` +
	`"uid":"00000000-0000-0000-0000-000000000001"}]}`

const pod = `{"apiVersion":"v1","kind":"Pod",` + metadata + `,"spec":{"restartPolicy":"Never",` +
	`"containers":[{"name":"tensorflow","image":"image","command":["python","main.py"],` +
	`"env":[{"name":"TF_CONFIG","value":"%s"}],"ports":[{"name":"tfjob-port","containerPort":2222}]}]}}`

const service = `{"apiVersion":"v1","kind":"Service",` + metadata + `,"spec":{"clusterIP":"None",` +
	`"selector":{"training.kubeflow.org/job-name":"load"},"ports":[{"name":"tfjob-port","port":2222}]}}`

func main() {
	server, authority, token, namespace := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	pods, _ := strconv.Atoi(os.Args[5])
	connections, _ := strconv.Atoi(os.Args[6])
	pem, err := os.ReadFile(authority)
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	// As long as the TF_CONFIG of 20 workers.
	config := strings.Repeat(`\"load-worker-00.namespace.svc:2222\",`, 20)
	var next atomic.Int64
	var workers sync.WaitGroup
	begin := time.Now()
	for range connections {
		workers.Add(1)
		go func() {
			defer workers.Done()
			client := http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: trusted},
				TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
			}}
			for {
				i := int(next.Add(1)) - 1
				if i >= pods {
					return
				}
				post(&client, server, token, namespace, "services", fmt.Sprintf(service, i, i))
				post(&client, server, token, namespace, "pods", fmt.Sprintf(pod, i, i, config))
			}
		}()
	}
	workers.Wait()
	fmt.Println(float64(pods) / time.Since(begin).Seconds())
}

func post(client *http.Client, server, token, namespace, kind, body string) {
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/%s", server, namespace, kind)
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		panic(err)
	}
	text, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		panic(string(text))
	}
}
